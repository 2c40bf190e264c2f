package alertmanager

import (
	"slices"
	"time"
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
