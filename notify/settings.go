package notify

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// Settings are what may change while a Notifier runs: the section alertmanager
// of the configuration file, as package internal/strict decodes it.
type Settings struct {
	// HTTP is how the endpoints are spoken to that have no HTTP of their own.
	HTTP HTTP `yaml:"http"`
	// Endpoints are all told of every alert. There may be 16, none twice.
	Endpoints []Endpoint `yaml:"endpoints"`
	// ExternalLabels are given to every alert that has no such label.
	ExternalLabels map[string]string `yaml:"external_labels"`
	// Relabel is applied to every alert, in order, after ExternalLabels.
	Relabel []Relabel `yaml:"alert_relabel_configs"`
	// QueueSize is how many alerts are held for an endpoint.
	QueueSize int `yaml:"queue_size" accept:"1..100000"`
	// BatchSize is how many alerts are sent at once.
	BatchSize int `yaml:"batch_size" accept:"1..1000"`
	// MaxBody is the size of the largest request, in bytes. An alert that does
	// not fit is dropped.
	MaxBody int `yaml:"max_body_bytes" accept:"4096..67108864"`
}

// Endpoint is one Alertmanager.
type Endpoint struct {
	// URL is as CheckURL has it.
	URL string `yaml:"url"`
	// HTTP stands in place of all of Settings.HTTP where it is not zero.
	HTTP HTTP `yaml:"http"`
}

// HTTP is how an endpoint is spoken to. All files are read again before each
// request. Of BasicAuth and CredentialsFile there may be one.
type HTTP struct {
	// Timeout is the time for a request and its answer; 10 s where it is 0.
	Timeout   time.Duration `yaml:"timeout" accept:"100ms..5m"`
	TLS       TLS           `yaml:"tls"`
	BasicAuth BasicAuth     `yaml:"basic_auth"`
	// CredentialsFile holds a bearer token.
	CredentialsFile string `yaml:"credentials_file"`
}

// TLS is how an endpoint is known, and how one is known to it.
type TLS struct {
	// CAFile holds the certificates that may sign the endpoint's, as PEM; the
	// system's are used without it.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile are what is shown to the endpoint, as PEM: both or
	// none.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName is the name that the endpoint's certificate must have; the
	// URL's without it.
	ServerName string `yaml:"server_name"`
	// InsecureSkipVerify takes any certificate, and so anybody for the endpoint.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
}

// BasicAuth is a user's name and the file that holds the password: both or
// none.
type BasicAuth struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
}

// Bounds of a configuration.
const (
	maxEndpoints = 16
	maxExternal  = 64
	maxRelabel   = 256
	maxText      = 4096 // bytes
)

// DefaultSettings returns the settings that apply where nothing else is said.
func DefaultSettings() Settings {
	return Settings{QueueSize: 10_000, BatchSize: 64, MaxBody: 1 << 20}
}

const defaultTimeout = 10 * time.Second

// WithURLs returns s with further endpoints, those of the command line. One
// that s has already stays as it is.
func (s Settings) WithURLs(urls ...string) Settings {
	s.Endpoints = slices.Clone(s.Endpoints)
	for _, u := range urls {
		if !slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return sameURL(e.URL, u) }) {
			s.Endpoints = append(s.Endpoints, Endpoint{URL: u})
		}
	}
	return s
}

// http returns how e is spoken to.
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

// Check implements strict.Checker. It reads no file.
func (s *Settings) Check() error {
	for _, l := range []struct {
		key    string
		n, max int
	}{
		{"endpoints", len(s.Endpoints), maxEndpoints},
		{"external_labels", len(s.ExternalLabels), maxExternal},
		{"alert_relabel_configs", len(s.Relabel), maxRelabel},
	} {
		if l.n > l.max {
			return strict.At(fmt.Errorf("found %d; accepted are up to %d", l.n, l.max), l.key)
		}
	}
	for _, n := range []struct {
		key         string
		n, from, to int
	}{
		{"queue_size", s.QueueSize, 1, 100_000},
		{"batch_size", s.BatchSize, 1, 1000},
		{"max_body_bytes", s.MaxBody, 4096, 64 << 20},
	} {
		if n.n < n.from || n.n > n.to {
			return strict.At(fmt.Errorf("found %d; accepted is from %d to %d", n.n, n.from, n.to), n.key)
		}
	}
	if err := s.HTTP.Check(); err != nil {
		return strict.At(err, "http")
	}
	return errors.Join(s.checkEndpoints(), s.checkLabels(), s.checkRelabel())
}

func (s *Settings) checkEndpoints() error {
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if err := e.Check(); err != nil {
			return strict.At(err, "endpoints", i)
		}
		if slices.ContainsFunc(s.Endpoints[:i], func(o Endpoint) bool { return sameURL(o.URL, e.URL) }) {
			return strict.At(errors.New("found the same address a second time; accepted is once"), "endpoints", i, "url")
		}
	}
	return nil
}

func (s *Settings) checkLabels() error {
	for name, value := range s.ExternalLabels {
		switch {
		case !model.LegacyValidation.IsValidLabelName(name):
			return strict.At(fmt.Errorf("found the label %s; accepted are letters, digits and _, no digit first", strict.Quote(name)), "external_labels", name)
		case value == "" || len(value) > maxText || !utf8.ValidString(value):
			return strict.At(fmt.Errorf("found a value of %d bytes; accepted is UTF-8 of 1 to %d", len(value), maxText), "external_labels", name)
		}
	}
	return nil
}

func (s *Settings) checkRelabel() error {
	for i := range s.Relabel {
		if err := s.Relabel[i].Check(); err != nil {
			return strict.At(err, "alert_relabel_configs", i)
		}
	}
	return nil
}

// Check implements strict.Checker.
func (e *Endpoint) Check() error {
	if err := CheckURL(e.URL); err != nil {
		return strict.At(err, "url")
	}
	if err := e.HTTP.Check(); err != nil {
		return strict.At(err, "http")
	}
	return nil
}

// Check implements strict.Checker.
func (h *HTTP) Check() error {
	basic := h.BasicAuth != (BasicAuth{})
	switch {
	case h.Timeout != 0 && (h.Timeout < 100*time.Millisecond || h.Timeout > 5*time.Minute):
		return strict.At(fmt.Errorf("found %s; accepted is from 100ms to 5m", h.Timeout), "timeout")
	case basic && h.CredentialsFile != "":
		return errors.New("found basic_auth and credentials_file; accepted is one of them")
	case basic && (h.BasicAuth.Username == "" || h.BasicAuth.PasswordFile == ""):
		return strict.At(errors.New("found only one of username and password_file; accepted are both or none"), "basic_auth")
	case (h.TLS.CertFile == "") != (h.TLS.KeyFile == ""):
		return strict.At(errors.New("found only one of cert_file and key_file; accepted are both or none"), "tls")
	case h.TLS.InsecureSkipVerify && h.TLS.CAFile != "":
		return strict.At(errors.New("found ca_file with insecure_skip_verify, which does not look at it; accepted is one of them"), "tls")
	}
	return nil
}
