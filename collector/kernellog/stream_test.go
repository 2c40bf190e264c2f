package kernellog_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestStreamIsFollowed(t *testing.T) {
	path, w := fifo(t)
	fmt.Fprint(w, record(10, 13)+record(11, 31))
	h := newHeard()
	s := start(t, kernellog.Options{Path: path, Emit: h.emit})
	if diff := cmp.Diff([]string{"past 13", "past 31"}, h.take()); diff != "" {
		t.Error(diff)
	}
	fmt.Fprint(w, record(11, 31)+record(12, 43)+record(20, 45))
	h.await(t, 2)
	if diff := cmp.Diff([]string{"43", "45"}, h.take()); diff != "" {
		t.Error(diff)
	}
	round, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := readings(round)
	if got["accel_kernel_log_lost_records_total"] != 7 {
		t.Errorf("%v", got)
	}
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

// The machine's own log, where it may be read.
func TestKernelLog(t *testing.T) {
	f, err := os.Open(kernellog.DefaultPath)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil || st.Rdev != 1<<8|11 {
		t.Skip("what stands in its place is not the kernel's log") // in some containers it is the console
	}
	h := newHeard()
	start(t, kernellog.Options{Emit: h.emit})
	for _, e := range h.take() {
		if !strings.HasPrefix(e, "past ") {
			t.Errorf("expected as news: %s", e)
		}
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
