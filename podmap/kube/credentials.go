package kube

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// Bounds of the credentials, in bytes.
const (
	maxTokenFile = 64 << 10
	maxCAFile    = 1 << 20
)

// prepare reads the credentials, which change while the program runs.
func (c *client) prepare() (*http.Client, string, error) {
	token, err := readToken(c.opts.TokenFile)
	if err != nil {
		return nil, "", err
	}
	var ca string
	if c.opts.CAFile != "" {
		if ca, err = readSmall(c.opts.CAFile, maxCAFile); err != nil {
			return nil, "", fmt.Errorf("certificates: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if token != c.tokens[0] {
		c.tokens = [2]string{token, c.tokens[0]}
	}
	if c.http != nil && c.ca == ca {
		return c.http, token, nil
	}
	var roots *x509.CertPool
	if c.opts.CAFile != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(ca)) {
			return nil, "", fmt.Errorf("certificates: no PEM certificate in %s", c.opts.CAFile)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = ca, c.newHTTP(roots)
	return c.http, token, nil
}

func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	token, err := readSmall(name, maxTokenFile)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token = strings.TrimSpace(token)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token: none in %s", name)
	}
	return token, nil
}

func readSmall(name string, limit int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return string(data), err
}
