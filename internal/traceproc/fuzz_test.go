package traceproc

import (
	"bytes"
	"io"
	"log/slog"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

func build() string { return peer.Build() }

// say writes frames one after the other.
func say(t testing.TB, parts ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	for i := 0; i < len(parts); i += 2 {
		buf, err := peer.Frame(parts[i+1])
		if err == nil {
			err = collector.WriteFrame(&b, parts[i].(collector.FrameKind), buf)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// FuzzSession: whatever a program says, the exporter lives on.
func FuzzSession(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request"))
	f.Add(say(f, frameHello, peer.Hello{Build: "b"}, frameLog, map[string]any{"level": "WARN", "msg": "x"}, frameAnswer, answer{1, Outcome{Sent: 3}}, frameAnswer, answer{}))
	f.Add(say(f, frameHello, peer.Hello{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New(Options{Build: "b", Log: slog.New(slog.DiscardHandler)})
		s := &session{p: p, greeted: make(chan struct{}), answers: make(chan answer, 1)}
		if err := s.frames(bytes.NewReader(data)); err == nil {
			t.Fatal("what a program says has no end")
		}
	})
}

// FuzzServe: whatever the exporter says, the program ends when it is gone.
func FuzzServe(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(say(f, frameSettings, Settings{Version: "1"}, frameBatch, map[string]any{"id": 1, "spans": []any{Span{Name: "x"}, 5}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		Serve(bytes.NewReader(data), io.Discard, "b", func(Settings, io.Writer) (Sender, error) { return taker{}, nil })
	})
}

// FuzzEndpoint: what is accepted has a host and a port, and no password.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"http://h", "https://[::1]:4318/x", "grpc://h:1", "grpcs://u:p@h", "ftp://h", "http:///x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err == nil && (e.Host == "" || e.GRPC && e.Path != "" || !e.GRPC && e.Path == "") {
			t.Fatalf("%q: %+v", s, e)
		}
	})
}
