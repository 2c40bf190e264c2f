package alertmanager

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Settings are the section alertmanager of the configuration file, as package
// internal/config/strict decodes it. They can change while a Notifier runs.
type Settings struct {
	// HTTP are the settings of endpoints without their own.
	HTTP HTTP `yaml:"http"`
	// Endpoints receive every alert; none twice.
	Endpoints []Endpoint `yaml:"endpoints"`
	// ExternalLabels are added to every alert without such a label.
	ExternalLabels map[string]string `yaml:"external_labels"`
}

// Endpoint is one Alertmanager.
type Endpoint struct {
	// URL is an address that CheckURL accepts.
	URL string `yaml:"url"`
	// HTTP replaces all of Settings.HTTP if it is not zero.
	HTTP HTTP `yaml:"http"`
}

// HTTP are the settings of an HTTP client. All files are read before each
// request. BasicAuth and CredentialsFile exclude each other.
type HTTP struct {
	// Timeout is the time for a request and its response; 10 s by default.
	Timeout   time.Duration `yaml:"timeout" accept:"100ms..5m"`
	TLS       TLS           `yaml:"tls"`
	BasicAuth BasicAuth     `yaml:"basic_auth"`
	// CredentialsFile contains a bearer token.
	CredentialsFile string `yaml:"credentials_file"`
}

// TLS are the certificates of the endpoint and the client.
type TLS struct {
	// CAFile contains the CA certificates for the endpoint, as PEM; the
	// system's certificates by default.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile are the client certificate and key, as PEM: both or
	// none.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName is the name in the endpoint's certificate; the host of the
	// URL by default.
	ServerName string `yaml:"server_name"`
	// InsecureSkipVerify disables certificate verification.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
}

// BasicAuth are a user name and the file with the password: both or none.
type BasicAuth struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
}

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

const defaultTimeout = 10 * time.Second

// WithURLs returns s with further endpoints, from the command line. Endpoints
// that s already has are unchanged.
func (s Settings) WithURLs(urls ...string) Settings {
	s.Endpoints = slices.Clone(s.Endpoints)
	for _, u := range urls {
		if !slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return sameURL(e.URL, u) }) {
			s.Endpoints = append(s.Endpoints, Endpoint{URL: u})
		}
	}
	return s
}

// http returns the HTTP settings of e.
func (s *Settings) http(e *Endpoint) HTTP {
	h := e.HTTP
	if h == (HTTP{}) {
		h = s.HTTP
	}
	if h.Timeout == 0 {
		h.Timeout = defaultTimeout
	}
	return h
}

const urlForm = "accepted is the address of an Alertmanager, http or https, a host, optionally a port and a path, such as https://example.com/alertmanager"

// CheckURL checks the address of an endpoint: http or https, a host, optionally
// a port and a path. A user, a password, a query or a fragment are refused.
// The error does not show the address, which may contain a password.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

// parseURL returns the address in the form of logs and labels: scheme, host,
// and a path without a trailing slash.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err == nil && u.User != nil:
		return nil, errors.New("found a user or a password in the address; use basic_auth, with the password in a file")
	case err != nil, len(address) > maxText, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "",
		strings.ContainsAny(address, "?#"), // also an empty one
		u.RawPath != "" || strings.ContainsAny(u.Path, "{}%@") || strings.ContainsFunc(u.Path, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("found an address of another form; " + urlForm)
	}
	path := strings.TrimRight(u.Path, "/")
	if strings.HasSuffix(path, "/api/v2") || strings.HasSuffix(path, "/api/v2/alerts") {
		return nil, errors.New("found an address that ends in the path of the API, which is added to it; " + urlForm)
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: path}, nil
}

func sameURL(a, b string) bool {
	x, err1 := parseURL(a)
	y, err2 := parseURL(b)
	return err1 == nil && err2 == nil && *x == *y
}
