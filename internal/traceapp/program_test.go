package traceapp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/traceapp"
	"github.com/accel-exporter/accel-exporter/internal/traceapp/otlptest"
	"github.com/accel-exporter/accel-exporter/internal/traceproc"
)

// TestProgram: the program says what it is.
func TestProgram(t *testing.T) {
	for _, c := range []struct {
		args       []string
		status     int
		out, error string
	}{
		{nil, 1, "", "--otlp.endpoint"},
		{[]string{"--help"}, 0, "--otlp.endpoint", ""},
		{[]string{"--version"}, 0, "accel-traces", ""},
		{[]string{"dance"}, 1, "", `"dance"`},
	} {
		var out, complaint strings.Builder
		status := traceapp.Main(c.args, strings.NewReader(""), &out, &complaint)
		if status != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(complaint.String(), c.error) {
			t.Errorf("%q: status %d\n%s%s", c.args, status, &out, &complaint)
		}
	}
}

// TestTLS: the receiver's certificate is checked against --otlp.ca-file.
func TestTLS(t *testing.T) {
	cert, file := certificate(t)
	for _, scheme := range []string{"https", "grpcs"} {
		t.Run(scheme, func(t *testing.T) {
			var r otlptest.Receiver
			l := listen(t, "127.0.0.1:0")
			config := &tls.Config{Certificates: []tls.Certificate{cert}}
			if scheme == "https" {
				defer r.Serve(l, nil, config)()
			} else {
				defer r.Serve(nil, l, config)()
			}
			e := endpoint(t, scheme, l)
			stranger := newStage(t, traceproc.Settings{Endpoint: e})
			stranger.identity["a"] = traceproc.Identity{UID: "u", Sure: true}
			stranger.show(10, nil, life("a", "GPU-1", 10))
			stranger.until("a failure", func() bool { return stranger.metric("accel_traces_batches_total", "failed") > 0 })
			g := newStage(t, traceproc.Settings{Endpoint: e, CAFile: file})
			g.identity["a"] = traceproc.Identity{UID: "u", Sure: true}
			g.show(10, nil, life("a", "GPU-1", 10))
			g.until("a span", func() bool { return g.sent() == 1 })
			if n := stranger.sent(); n > 0 {
				t.Errorf("%d spans were sent to who showed an unknown certificate", n)
			}
		})
	}
}

// certificate makes one for 127.0.0.1 and writes it to a file.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// TestKilled: a program that is killed is started again, goes on with the same
// trace, and nothing that was not sent yet is lost.
func TestKilled(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil, nil)()
	g := newStage(t, traceproc.Settings{Endpoint: endpoint(t, "http", l)})
	g.identity["a"] = traceproc.Identity{UID: "u", Sure: true}
	g.show(10, nil, life("a", "GPU-1", 10))
	g.until("a span", func() bool { return g.sent() == 1 })
	syscall.Kill(g.follower.PID(), syscall.SIGKILL)
	g.show(20, nil, life("a", "GPU-1", 10, working(15, 15)))
	g.until("another span", func() bool { return g.sent() == 2 && g.metric("accel_traces_program_restarts_total", "") == 1 })
	if s := r.Spans(); s[0].Trace != s[1].Trace || s[0].Parent != s[1].Parent {
		t.Errorf("%+v", s)
	}
	if text := g.log.String(); !strings.Contains(text, "signal_kill") || !strings.Contains(text, "Traces are sent again") {
		t.Errorf("log:\n%s", text)
	}
}

// TestEnd: what is under way when the exporter ends is told as far as it is
// known, and nothing is told as over that is not.
func TestEnd(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil, nil)()
	g := newStage(t, traceproc.Settings{Endpoint: endpoint(t, "http", l)})
	g.show(10, nil, life("a", "GPU-1", 10)) // nobody knows its UID yet
	g.show(20, nil, life("a", "GPU-1", 10, working(12, 15), idleSince(15)))
	g.until("the program", func() bool { return g.metric("accel_traces_program_up", "") == 1 })
	g.stop()
	var names []string
	for _, s := range r.Spans() {
		names = append(names, s.Name)
		if s.Name == "accel.idle" && (s.Attrs["accel.observed"] != "false" || !s.End.Equal(at(20))) {
			t.Errorf("%+v", s)
		}
	}
	if got := strings.Join(names, " "); got != "accel.held accel.wait accel.idle" {
		t.Errorf("sent: %s", got)
	}
}

// TestEnvironment: what OpenTelemetry reads from the environment stands, and
// the flags come before it.
func TestEnvironment(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil, nil)()
	g := newStage(t, traceproc.Settings{Endpoint: endpoint(t, "http", l)},
		"OTEL_RESOURCE_ATTRIBUTES=k8s.cluster.name=blue,k8s.pod.name=mine", "OTEL_SERVICE_NAME=gpus",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=team", "OTEL_EXPORTER_OTLP_COMPRESSION=none")
	g.identity["a"] = traceproc.Identity{UID: "u", Sure: true}
	g.show(10, nil, life("a", "GPU-1", 10))
	g.until("a span", func() bool { return g.sent() == 1 })
	res := r.Spans()[0].Resource
	if res["k8s.cluster.name"] != "blue" || res["service.name"] != "gpus" || res["k8s.pod.name"] != "a" || r.Headers()[0]["x-tenant"] != "team" {
		t.Errorf("%v\n%v", res, r.Headers())
	}
}
