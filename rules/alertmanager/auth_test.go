package alertmanager_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/alertmanager/api/v2/models"

	memory "github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// TestCredentials: credentials are read from their file before each request.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		http  alertmanager.HTTP
		wants func(secret string) func(r *http.Request) bool
	}{
		"bearer": {
			alertmanager.HTTP{CredentialsFile: filepath.Join(dir, "bearer")},
			func(secret string) func(*http.Request) bool {
				return func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+secret }
			},
		},
		"basic": {
			alertmanager.HTTP{BasicAuth: alertmanager.BasicAuth{Username: "node", PasswordFile: filepath.Join(dir, "basic")}},
			func(secret string) func(*http.Request) bool {
				return func(r *http.Request) bool {
					user, password, _ := r.BasicAuth()
					return user == "node" && password == secret
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(address)
			s.HTTP = c.http
			bubble(t, s, func(t *testing.T, m *manager, n *rig) {
				accepted := c.wants("first")
				m.answer = func(w http.ResponseWriter, r *http.Request, _ []string) bool {
					if accepted(r) {
						return false
					}
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(w, "who is "+r.Header.Get("Authorization")+"?")
					return true
				}
				n.Send(firing("a"))
				synctest.Wait()
				if got := n.metrics()["request_failures_total credentials"]; got != 1 || m.count() != 0 {
					t.Errorf("without a file: %v failures, %d requests", got, m.count())
				}
				write(t, dir, name, "first\n")
				time.Sleep(time.Minute)
				if got := m.knows(); got != "a/" {
					t.Errorf("with the first credential: %q", got)
				}
				m.set(func() { accepted = c.wants("second") })
				n.Send(firing("b"))
				synctest.Wait()
				if got := n.metrics()["request_failures_total unauthorized"]; got != 1 {
					t.Errorf("with an outdated credential: %v", got)
				}
				write(t, dir, name, "second")
				time.Sleep(time.Minute)
				if got := m.knows(); got != "a b/" {
					t.Errorf("with the second credential: %q", got)
				}
				if text := n.log.String(); strings.Contains(text, "first") || !strings.Contains(text, "unencrypted") {
					t.Errorf("log:\n%s", text)
				}
			})
		})
	}
}

// TestTLS: the server's certificate is verified by the authority of the settings, and
// gets the client's certificate.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	m := &manager{t: t, pipes: memory.NewPipes(), alerts: map[string]*models.PostableAlert{}}
	m.server = httptest.NewUnstartedServer(m)
	m.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	m.server.StartTLS()
	t.Cleanup(m.server.Close)
	pair := m.server.TLS.Certificates[0]
	pkcs8, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := write(t, dir, "node.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	key := write(t, dir, "node.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	s := settings(m.server.URL)
	s.Endpoints[0].HTTP.TLS = alertmanager.TLS{CertFile: cert, KeyFile: key}
	n := start(t, alertmanager.Options{Settings: s})
	n.Send(firing("a"))
	wait(t, "a certificate of an unknown authority is refused", func() bool {
		return strings.Contains(n.log.String(), "certificate signed by unknown authority")
	})
	if m.count() != 0 {
		t.Error("a request was sent to an unverified server")
	}
	for name, use := range map[string]alertmanager.TLS{
		"authority":            {CAFile: cert, CertFile: cert, KeyFile: key, ServerName: "example.com"},
		"insecure_skip_verify": {CertFile: cert, KeyFile: key, InsecureSkipVerify: true},
	} {
		s := settings(m.server.URL)
		s.Endpoints[0].HTTP.TLS = use
		if err := n.Apply(s); err != nil {
			t.Fatal(err)
		}
		n.Send(firing(name))
		wait(t, name+" accepts the certificate", func() bool { return strings.Contains(m.knows(), name) })
	}
	if got := m.requests[0].TLS.PeerCertificates[0]; !bytes.Equal(got.Raw, pair.Certificate[0]) {
		t.Errorf("the client certificate is that of %q", got.Subject)
	}
}

// TestProxy: requests use the proxy of the environment. Its password is not logged.
func TestProxy(t *testing.T) {
	requests := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Proxy-Authorization")
		http.Error(w, "user:hunter2@proxy", http.StatusBadGateway)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", strings.Replace(proxy.URL, "//", "//user:hunter2@", 1))
	n := start(t, alertmanager.Options{Settings: settings(address)})
	n.Send(firing("a"))
	if got := <-requests; got != "POST http://am.example:9093/api/v2/alerts Basic dXNlcjpodW50ZXIy" {
		t.Errorf("%q", got)
	}
	wait(t, "the failure is logged", func() bool { return strings.Contains(n.log.String(), "server_error") })
	n.stop()
	t.Setenv("HTTP_PROXY", "http://user:hunter2@pro xy")
	other := start(t, alertmanager.Options{Settings: settings(address)})
	other.Send(firing("a"))
	wait(t, "the failure is logged", func() bool { return strings.Contains(other.log.String(), "does not accept") })
	other.stop()
	if text := n.log.String() + other.log.String(); strings.Contains(text, "hunter2") {
		t.Errorf("log:\n%s", text)
	}
}
