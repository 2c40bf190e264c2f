package kernellog_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

// fifo returns a named pipe and its writing end, in place of a device that
// returns records once.
func fifo(t *testing.T) (string, *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return path, w
}

func TestFloodIsCounted(t *testing.T) {
	const flood = 10_000
	path, w := fifo(t)
	n, last := 0, make(chan struct{})
	start(t, kernellog.Options{Path: path, Emit: func(collector.Event) {
		if n++; n == flood {
			close(last)
		}
	}})
	go func() {
		out := bufio.NewWriter(w)
		for i := range flood {
			out.WriteString(record(i, 13))
		}
		out.Flush()
	}()
	select {
	case <-last:
	case <-time.After(guard):
		t.Fatal("events were lost")
	}
}

func TestClose(t *testing.T) {
	path, w := fifo(t)
	h := newHeard()
	s := kernellog.New(kernellog.Options{Path: path, Sysfs: t.TempDir(), Emit: h.emit})
	if err := s.Close(); err != nil { // never sampled
		t.Fatal(err)
	}
	s = start(t, kernellog.Options{Path: path, Emit: h.emit})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(w, record(1, 79))
	if got := h.take(); len(got) > 0 {
		t.Errorf("expected after Close: %v", got)
	}
}
