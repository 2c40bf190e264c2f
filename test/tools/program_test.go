package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

// patience is for machines that have much else to do.
const patience = 5 * time.Minute

// program returns the path in the variable; without it there is nothing to
// test the rules against.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s is not set: .ci/tools.sh gets it", variable)
	}
	return path
}

// start runs a server until the test ends, and waits until it is ready.
func start(t *testing.T, address, path string, args ...string) {
	t.Helper()
	p, err := stack.Start(filepath.Join(t.TempDir(), "log"), nil, path, args...)
	if err != nil {
		t.Fatal(err)
	}
	ended(t, p)
	if err := p.Ready(t.Context(), "http://"+address+"/-/ready"); err != nil {
		t.Fatal(err)
	}
}

// ended stops a program at the end of the test, and shows its output if that failed.
func ended(t *testing.T, p *stack.Process) {
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			out, _ := os.ReadFile(p.Log())
			t.Logf("%s", out)
		}
	})
}

// served serves a page of metrics until the test ends, and returns the address.
func served(t *testing.T, page func() string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, page())
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// freeAddress is a port of loopback that is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func get(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", url, resp.Status, body)
	}
	return body, err
}

func getJSON(url string, into any) error {
	body, err := get(url)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// eventually waits for a condition of another process, which sends no event
// when it comes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
