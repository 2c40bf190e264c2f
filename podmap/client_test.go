package podmap_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestForeign: a server on the socket that is not a kubelet.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(net.Conn)
		want  podmap.Outcome
	}{
		{"silent", func(c net.Conn) { io.Copy(io.Discard, c) }, podmap.OutcomeTimeout},
		{"closes the connection", func(c net.Conn) { c.Close() }, podmap.OutcomeUnavailable},
		{"HTTP/1", func(c net.Conn) {
			go io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
			io.Copy(io.Discard, c)
		}, podmap.OutcomeUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubelet.sock")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				w := podmap.New(podmap.Options{Socket: path, Dial: func(context.Context, string) (net.Conn, error) {
					mine, theirs := net.Pipe()
					go c.serve(theirs)
					return mine, nil
				}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := w.Status(); s.Last != c.want || s.State != podmap.StateUnreachable || s.Calls[c.want] < 4 || s.LastError == "" {
					t.Errorf("status: %+v", s)
				}
				cancel()
				<-done
			})
		})
	}
}
