package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestConnections: connections above the limit are closed, and closed ones do not count.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = limitConnections()
	s.Start()
	defer s.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 {
		var open []net.Conn
		for range maxConnections {
			open = append(open, dial())
		}
		if n, err := dial().Read(make([]byte, 1)); err == nil {
			t.Errorf("a connection above the limit has an answer of %d bytes", n)
		}
		for _, c := range open {
			if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadAll(c); err != nil {
				t.Errorf("a connection below the limit: %v", err)
			}
			c.Close()
		}
	}
}

// TestReleaseFileIsNoLink: a link in the release directory is not followed.
func TestReleaseFileIsNoLink(t *testing.T) {
	dir := t.TempDir()
	target := tempFile(t, "target", "10m")
	if err := os.Symlink(target, filepath.Join(dir, "nvidia")); err != nil {
		t.Fatal(err)
	}
	if r, err := readRelease(dir, "nvidia"); err == nil || !r.until.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReleaseFileIsReplaced: a FIFO that takes the place of a release file while it is
// read is not waited for.
func TestReleaseFileIsReplaced(t *testing.T) {
	info, err := os.Stat(tempFile(t, "nvidia", "10m"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := syscall.Mkfifo(filepath.Join(root.Name(), "nvidia"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readSame(root, "nvidia", info); err == nil {
		t.Errorf("read %q", text)
	}
}

// TestReachedAs: pages for people are not served under the name of a public site.
func TestReachedAs(t *testing.T) {
	f := &webFlags{hosts: []string{"gpus.example.com"}}
	for host, want := range map[string]bool{
		"10.0.0.1:9400": true, "[fe80::1]:9400": true, "[::1]": true, "localhost:9400": true, "gpu-1": true, "": true,
		"ip-10-0-0-1.ec2.internal:9400": true, "accel-exporter.monitoring.svc": true, "Gpu-1.hpc.example.org.": true, "gpus.example.com:9400": true,
		"attacker.example:9400": false, "gpu-1.attacker.example": false, "10.0.0.1.attacker.example": false, "gpus.example.com.attacker.example": false,
	} {
		if got := f.reachedAs(host, "gpu-1.hpc.example.org"); got != want {
			t.Errorf("%q: %t, want %t", host, got, want)
		}
	}
}
