package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/config"
)

const (
	// askTimeout is how long a running exporter may take to answer, also on a busy
	// machine.
	askTimeout = time.Minute
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 64 << 20
)

// askFlags select the running exporter that a subcommand queries.
type askFlags struct {
	url        string
	httpConfig string
}

func (f *askFlags) add(app *kingpin.Application) {
	app.Flag("url", "URL of the running exporter, http://localhost:19400 by default.").Default("http://localhost" + defaultAddress).PlaceHolder("URL").StringVar(&f.url)
	app.Flag("http.config.file", "HTTP client configuration in Prometheus' format (basic_auth, authorization, tls_config), for an exporter that requires TLS or a password.").PlaceHolder("FILE").StringVar(&f.httpConfig)
}

// get decodes the JSON at a path of the exporter, or copies the answer to an io.Writer.
// No error contains a password.
func (f *askFlags) get(ctx context.Context, path, query string, into any) error {
	address := f.url
	if _, _, err := net.SplitHostPort(address); err == nil && !strings.Contains(address, "://") {
		address = "http://" + address
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return errors.New("--url is not of the form http://HOST:PORT")
	}
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	base = base.JoinPath(path)
	base.RawQuery = query
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		if certificate := (*tls.CertificateVerificationError)(nil); errors.As(err, &certificate) {
			return fmt.Errorf("the certificate of the exporter is not trusted: %w; tls_config in --http.config.file names its authority (ca_file) or its name (server_name)", err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer from %s within %s", base.Redacted(), askTimeout)
		}
		return fmt.Errorf("no exporter answers at --url: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%s answered %s: %s", base.Redacted(), resp.Status, strings.TrimSpace(string(text)))
	}
	if to, ok := into.(io.Writer); ok {
		_, err := io.Copy(to, io.LimitReader(resp.Body, maxAnswer))
		return err
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%s is not an exporter of this version: %w", base.Redacted(), err)
	}
	return nil
}

// local reports whether the exporter is on this machine, by its address.
func (f *askFlags) local() bool {
	_, rest, found := strings.Cut(f.url, "://")
	if !found {
		rest = f.url
	}
	host, _, _ := net.SplitHostPort(strings.TrimSuffix(rest, "/"))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// client returns the HTTP client of --http.config.file. Paths in the file are
// relative to it.
func (f *askFlags) client() (*http.Client, error) {
	if f.httpConfig == "" {
		return &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}, nil
	}
	cfg, _, err := config.LoadHTTPConfigFile(f.httpConfig)
	if err != nil {
		return nil, fmt.Errorf("--http.config.file=%s: %w", f.httpConfig, err)
	}
	cfg.SetDirectory(filepath.Dir(f.httpConfig))
	client, err := config.NewClientFromConfig(*cfg, "accel-exporter")
	if err != nil {
		return nil, fmt.Errorf("--http.config.file=%s: %w", f.httpConfig, err)
	}
	return client, nil
}
