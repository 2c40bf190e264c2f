package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
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

// log is the output of a program, shown where its test fails.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// start runs a server until the test ends, and waits until it is ready.
func start(t *testing.T, address, path string, args ...string) {
	t.Helper()
	out := &log{}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			out.mu.Lock()
			defer out.mu.Unlock()
			t.Logf("%s:\n%s", path, out.text.String())
		}
	})
	eventually(t, path+" is ready", func() error {
		select {
		case <-ended:
			t.Fatalf("%s has ended: %s", path, cmd.ProcessState)
		default:
		}
		_, err := get("http://" + address + "/-/ready")
		return err
	})
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
