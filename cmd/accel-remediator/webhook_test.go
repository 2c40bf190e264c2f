package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
)

// guarded is a web configuration with TLS and the password "open".
const guarded = `tls_server_config: {cert_file: cert, key_file: key}
basic_auth_users: {alertmanager: $2a$04$.PncDd2iDazq7xF8mtEmCewAxJtT4JZ9sF88ttVRBzwubsqenHPCy}
`

// Only a POST with the password and a body within bounds triggers a pass. The
// content of the body is ignored.
func TestWebhook(t *testing.T) {
	triggers := 0
	client, url := serveGuarded(t, webhook(func() { triggers++ }))
	for _, c := range []struct {
		name, method, password string
		body                   io.Reader
		want, triggers         int
	}{
		{"no password", http.MethodPost, "", strings.NewReader("{}"), http.StatusUnauthorized, 0},
		{"a wrong password", http.MethodPost, "shut", strings.NewReader("{}"), http.StatusUnauthorized, 0},
		{"GET", http.MethodGet, "open", nil, http.StatusMethodNotAllowed, 0},
		{"too long", http.MethodPost, "open", bytes.NewReader(make([]byte, maxWebhook+1)), http.StatusRequestEntityTooLarge, 0},
		{"the largest", http.MethodPost, "open", bytes.NewReader(make([]byte, maxWebhook)), http.StatusAccepted, 1},
		{"no JSON", http.MethodPost, "open", strings.NewReader("{"), http.StatusAccepted, 1},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+"/webhook", c.body)
		if err != nil {
			t.Fatal(err)
		}
		if c.password != "" {
			req.SetBasicAuth("alertmanager", c.password)
		}
		triggers = 0
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want || triggers != c.triggers {
			t.Errorf("%s: %s, triggers %d; want %d, triggers %d", c.name, resp.Status, triggers, c.want, c.triggers)
		}
	}
}

// serveGuarded serves a webhook as the program does.
func serveGuarded(t *testing.T, webhook http.Handler) (*http.Client, string) {
	t.Helper()
	dir := t.TempDir()
	roots := certify(t, dir)
	file := filepath.Join(dir, "web.yml")
	if err := os.WriteFile(file, []byte(guarded), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhook", webhook)
	server := &http.Server{Handler: mux}
	served := make(chan struct{})
	go func() {
		defer close(served)
		web.Serve(listener, server, &web.FlagConfig{WebConfigFile: &file}, slog.New(slog.DiscardHandler))
	}()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-served
	})
	return &http.Client{Transport: transport}, fmt.Sprintf("https://%s", listener.Addr())
}

// certify writes a self-signed certificate for 127.0.0.1.
func certify(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert}, "key": {Type: "EC PRIVATE KEY", Bytes: key}} {
		data := pem.EncodeToMemory(block)
		if name == "cert" {
			roots.AppendCertsFromPEM(data)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return roots
}
