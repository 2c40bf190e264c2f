package alertmanager

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// maxText bounds a text of a configuration, in bytes.
const maxText = 4096

// Check implements strict.Checker. It reads no file.
func (s *Settings) Check() error {
	for i := range s.Endpoints {
		if slices.ContainsFunc(s.Endpoints[:i], func(o Endpoint) bool { return sameURL(o.URL, s.Endpoints[i].URL) }) {
			return strict.At(errors.New("found the same address a second time; accepted is once"), "endpoints", i, "url")
		}
	}
	return s.checkLabels()
}

func (s *Settings) checkLabels() error {
	for name, value := range s.ExternalLabels {
		switch {
		case !model.LegacyValidation.IsValidLabelName(name):
			return strict.At(fmt.Errorf("found the label %s; accepted are letters, digits and _, no digit first", wording.Quote(name)), "external_labels", name)
		case value == "" || len(value) > maxText || !utf8.ValidString(value):
			return strict.At(fmt.Errorf("found a value of %d bytes; accepted is UTF-8 of 1 to %d", len(value), maxText), "external_labels", name)
		}
	}
	return nil
}

// Check implements strict.Checker.
func (e *Endpoint) Check() error {
	if err := CheckURL(e.URL); err != nil {
		return strict.At(err, "url")
	}
	return nil
}

// Check implements strict.Checker.
func (h *HTTP) Check() error {
	basic := h.BasicAuth != (BasicAuth{})
	switch {
	case basic && h.CredentialsFile != "":
		return errors.New("found basic_auth and credentials_file; accepted is one of them")
	case basic && (h.BasicAuth.Username == "" || h.BasicAuth.PasswordFile == ""):
		return strict.At(errors.New("found only one of username and password_file; accepted are both or none"), "basic_auth")
	case (h.TLS.CertFile == "") != (h.TLS.KeyFile == ""):
		return strict.At(errors.New("found only one of cert_file and key_file; accepted are both or none"), "tls")
	case h.TLS.InsecureSkipVerify && h.TLS.CAFile != "":
		return strict.At(errors.New("found ca_file with insecure_skip_verify, which ignores it; accepted is one of them"), "tls")
	}
	return nil
}
