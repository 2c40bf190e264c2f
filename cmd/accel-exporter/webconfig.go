package main

import (
	"fmt"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// webConfig is the form of the file of --web.config.file, so that a mistake has its
// line. The toolkit checks what the form does not express.
type webConfig struct {
	TLS struct {
		Cert          string   `yaml:"cert"`
		Key           string   `yaml:"key"`
		ClientCA      string   `yaml:"client_ca"`
		CertFile      string   `yaml:"cert_file"`
		KeyFile       string   `yaml:"key_file"`
		ClientAuth    string   `yaml:"client_auth_type" accept:"NoClientCert|RequestClientCert|RequireAnyClientCert|RequireClientCert|VerifyClientCertIfGiven|RequireAndVerifyClientCert"`
		ClientCAFile  string   `yaml:"client_ca_file"`
		CipherSuites  []string `yaml:"cipher_suites"`
		Curves        []string `yaml:"curve_preferences" accept:"CurveP256|CurveP384|CurveP521|X25519"`
		MinVersion    string   `yaml:"min_version" accept:"TLS10|TLS11|TLS12|TLS13"`
		MaxVersion    string   `yaml:"max_version" accept:"TLS10|TLS11|TLS12|TLS13"`
		PreferServer  bool     `yaml:"prefer_server_cipher_suites"`
		ClientAllowed []string `yaml:"client_allowed_sans"`
	} `yaml:"tls_server_config"`
	HTTP struct {
		HTTP2   bool              `yaml:"http2"`
		Headers map[string]string `yaml:"headers"`
	} `yaml:"http_server_config"`
	RateLimit struct {
		Interval string `yaml:"interval"`
		Burst    int    `yaml:"burst"`
	} `yaml:"rate_limit"`
	Users map[string]string `yaml:"basic_auth_users" accept:"scalar"`
}

// checkWebConfig reports every mistake in the file of --web.config.file.
func checkWebConfig(path string) error {
	if path == "" {
		return nil
	}
	data, err := strict.NewFile(path).Read()
	if err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	if err := strict.Decode(path, data, &webConfig{}); err != nil {
		return err
	}
	if err := web.Validate(path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
