package alertmanager_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
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

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	der, key := a.sign("ca", true)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.key = cert, key
	return a
}

func (a *authority) sign(name string, isCA bool) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true, IsCA: isCA,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if isCA {
		parent, signer, c.ExtKeyUsage = c, key, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// write writes a certificate and its key, and returns their names.
func (a *authority) write(dir, name string) (cert, key string) {
	der, k := a.sign(name, false)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return write(a.t, dir, name+".crt", pemOf("CERTIFICATE", der)), write(a.t, dir, name+".key", pemOf("PRIVATE KEY", pkcs8))
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// serveTLS starts an Alertmanager on a TCP port that requires a client certificate.
func serveTLS(t *testing.T, a *authority, dir string) *manager {
	cert, key := a.write(dir, "am.example")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{t: t, pipes: memory.NewPipes(), alerts: map[string]*models.PostableAlert{}}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	m.server = httptest.NewUnstartedServer(m)
	m.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	m.server.StartTLS()
	t.Cleanup(m.server.Close)
	return m
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t), newAuthority(t)
	m := serveTLS(t, ours, dir)
	ca := write(t, dir, "ca.crt", pemOf("CERTIFICATE", theirs.cert.Raw))
	cert, key := ours.write(dir, "node")
	s := settings(m.server.URL)
	s.Endpoints[0].HTTP.TLS = alertmanager.TLS{CAFile: ca, CertFile: cert, KeyFile: key, ServerName: "am.example"}
	n := start(t, alertmanager.Options{Settings: s})
	n.Send(firing("a"))
	wait(t, "a certificate of an unknown authority is refused", func() bool {
		return strings.Contains(n.log.String(), "certificate signed by unknown authority")
	})
	if m.count() != 0 {
		t.Error("a request was sent to an unverified server")
	}
	write(t, dir, "ca.crt", pemOf("CERTIFICATE", ours.cert.Raw))
	wait(t, "the new authority is read", func() bool { return m.knows() == "a/" })
	if got := m.requests[0].TLS.PeerCertificates[0].Subject.CommonName; got != "node" {
		t.Errorf("the client certificate is that of %q", got)
	}

	other := settings(m.server.URL)
	other.Endpoints[0].HTTP.TLS = alertmanager.TLS{CertFile: cert, KeyFile: key, InsecureSkipVerify: true}
	if err := n.Apply(other); err != nil {
		t.Fatal(err)
	}
	n.Send(firing("b"))
	wait(t, "insecure_skip_verify accepts any certificate", func() bool { return m.knows() == "a b/" })
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
