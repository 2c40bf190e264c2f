package kernellog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guard is how long a test that waits for the kernel waits before it fails.
const guard = 2 * time.Minute

// heard keeps the events of a Source.
type heard struct {
	mu     sync.Mutex
	events []collector.Event
	more   chan struct{} // capacity 1
}

func newHeard() *heard { return &heard{more: make(chan struct{}, 1)} }

func (h *heard) emit(e collector.Event) {
	h.mu.Lock()
	h.events = append(h.events, e)
	h.mu.Unlock()
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// all returns the events.
func (h *heard) all() []collector.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events
}

// take returns the codes since the previous call, with "past" before codes of
// past events.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, e := range h.events {
		s := fmt.Sprint(e.Code)
		if e.Past {
			s = "past " + s
		}
		out = append(out, s)
	}
	h.events = nil
	return out
}

// await waits for n events.
func (h *heard) await(t *testing.T, n int) {
	t.Helper()
	timeout := time.After(guard)
	for {
		have := len(h.all())
		if have >= n {
			return
		}
		select {
		case <-h.more:
		case <-timeout:
			t.Fatalf("%d events of %d", have, n)
		}
	}
}

// start begins to follow a log and waits for its past.
func start(t *testing.T, o kernellog.Options) *kernellog.Source {
	t.Helper()
	if o.Sysfs == "" {
		o.Sysfs = t.TempDir()
	}
	s := kernellog.New(o)
	t.Cleanup(func() { s.Close() })
	if _, err := s.Sample(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// record returns a record of /dev/kmsg with an Xid.
func record(seq, code int) string {
	return fmt.Sprintf("4,%d,%d,-;NVRM: Xid (PCI:0000:1b:00): %d, x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:1b:00.0\n", seq, seq*1_000_000, code)
}

func write(t *testing.T, path, text string, flags int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	half := record(40, 32)
	write(t, path, record(1, 13)+"6,2,2000000,-;usb 1-1: new device\n"+record(3, 31)+half[:40], 0)
	h := newHeard()
	s := start(t, kernellog.Options{Path: path, Emit: h.emit})
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"before start", func() {}, []string{"past 13", "past 31"}},
		{"a line that began before", func() { write(t, path, half[40:], os.O_APPEND) }, []string{"past 32"}},
		{"grows", func() { write(t, path, record(4, 43), os.O_APPEND) }, []string{"43"}},
		{"half a line", func() { write(t, path, record(5, 45)[:30], os.O_APPEND) }, nil},
		{"and the rest", func() { write(t, path, record(5, 45)[30:], os.O_APPEND) }, []string{"45"}},
		{"truncated", func() { write(t, path, record(6, 48), os.O_TRUNC) }, []string{"48"}},
		{"rotated", func() {
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			write(t, path+".1", record(7, 61), os.O_APPEND)
		}, []string{"61"}},
		{"replaced", func() {
			write(t, path+".1", record(8, 62), os.O_APPEND)
			write(t, path, record(1, 63), 0)
		}, []string{"62", "63"}},
		{"grows again", func() { write(t, path, record(2, 64), os.O_APPEND) }, []string{"64"}},
	} {
		step.do()
		h.await(t, len(step.want))
		if diff := cmp.Diff(step.want, h.take()); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", step.name, diff)
		}
	}
	round, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := readings(round); got["accel_kernel_log_lost_records_total"] != 0 {
		t.Errorf("%v", got)
	}
}

func readings(r collector.Round) map[string]float64 {
	out := map[string]float64{}
	for _, r := range r.Node {
		out[strings.Join(append([]string{r.Metric.Name}, r.Labels...), " ")] = r.Value
	}
	return out
}

// Records of the past are dated by the log's clock, later ones by the system's.
func TestTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "4,1,90000000,-;NVRM: Xid (PCI:0000:1b:00): 13, x\n"+
		"4,2,99000000000,-;NVRM: Xid (PCI:0000:1b:00): 14, x\n"+
		"[  120.500000] NVRM: Xid (PCI:0000:1b:00): 31, x\n"+
		"2026-05-04T10:03:00,250000+00:00 NVRM: Xid (PCI:0000:1b:00): 43, x\n"+
		"2026-05-04T12:04:00.5+02:00 host kernel: NVRM: Xid (PCI:0000:1b:00): 45, x\n"+
		"[Mon May  4 10:05:00 2026] NVRM: Xid (PCI:0000:1b:00): 48, x\n"+
		"May  4 10:06:00 host kernel: [  360.000000] NVRM: Xid (PCI:0000:1b:00): 61, x\n"+
		"               NVRM: Xid (PCI:0000:1b:00): 62, x\n"+
		"<4>[  480.000000] NVRM: Xid (PCI:0000:1b:00): 63, x\n"+
		"kern  :warn  : [  540.000000] [   T42] NVRM: Xid (PCI:0000:1b:00): 64, x\n"+
		"May  4 09:59:00 host kernel: NVRM: Xid (PCI:0000:1b:00): 79, an earlier boot\n"+
		"May  4 10:06:00 host logger: NVRM: Xid (PCI:0000:1b:00): 94, forged\n", 0)
	boot := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	var minutes atomic.Int64 // since boot
	minutes.Store(60)
	h := newHeard()
	start(t, kernellog.Options{
		Path: path, Emit: h.emit,
		Now:  func() time.Time { return boot.Add(time.Duration(minutes.Load()) * time.Minute) },
		Boot: func() time.Time { return boot },
	})
	minutes.Store(61)
	write(t, path, "4,3,1000000,-;NVRM: Xid (PCI:0000:1b:00): 95, x\n", os.O_APPEND)
	h.await(t, 11)
	got := map[uint64]time.Duration{}
	for _, e := range h.all() {
		got[e.Code] = e.Time.Sub(boot)
	}
	want := map[uint64]time.Duration{
		13: 90 * time.Second,
		14: time.Hour, // a clock that ran ahead of ours
		31: 120500 * time.Millisecond,
		43: 3*time.Minute + 250*time.Millisecond, 45: 4*time.Minute + 500*time.Millisecond,
		48: 5 * time.Minute, 61: 6 * time.Minute,
		62: 6 * time.Minute, // as the line before it
		63: 8 * time.Minute, 64: 9 * time.Minute,
		95: 61 * time.Minute,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("since boot (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	denied := filepath.Join(dir, "denied")
	write(t, denied, "", 0)
	if err := os.Chmod(denied, 0); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path string
		err        error
		says       string
		needsUser  bool
	}{
		{name: "absent", path: filepath.Join(dir, "gone"), err: collector.ErrAbsent, says: "gone"},
		{name: "no log", path: dir, err: syscall.EISDIR, says: dir},
		{name: "log of nothing", path: os.DevNull, err: io.ErrUnexpectedEOF, says: os.DevNull},
		{name: "denied", path: denied, err: fs.ErrPermission, says: "CAP_SYSLOG", needsUser: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.needsUser && os.Geteuid() == 0 {
				t.Skip("the superuser may read everything")
			}
			s := kernellog.New(kernellog.Options{Path: tc.path, Sysfs: dir, Emit: newHeard().emit})
			defer s.Close()
			round, err := s.Sample(t.Context())
			if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) || len(round.Node) > 0 {
				t.Errorf("%v, %v", round, err)
			}
		})
	}
}

func TestLogThatComesLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	kernellog.Retry(t, 10*time.Millisecond)
	h := newHeard()
	s := kernellog.New(kernellog.Options{Path: path, Sysfs: t.TempDir(), Emit: h.emit})
	defer s.Close()
	if _, err := s.Sample(t.Context()); !errors.Is(err, collector.ErrAbsent) {
		t.Fatal(err)
	}
	write(t, path+".new", record(1, 13), 0)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	h.await(t, 1)
	if diff := cmp.Diff([]string{"past 13"}, h.take()); diff != "" {
		t.Error(diff)
	}
}

// Timestamps without a year, and missing timestamps.
func TestTimesThatAreNotSaid(t *testing.T) {
	now := time.Date(2027, 1, 1, 1, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "NVRM: Xid (PCI:0000:1b:00): 13, x\nDec 31 23:30:00 host kernel: NVRM: Xid (PCI:0000:1b:00): 31, x\n", 0)
	if err := os.Chtimes(path, time.Time{}, now.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	h := newHeard()
	start(t, kernellog.Options{
		Path: path, Emit: h.emit,
		Now: func() time.Time { return now }, Boot: func() time.Time { return now.Add(-3 * time.Hour) },
	})
	got := map[uint64]time.Duration{}
	for _, e := range h.all() {
		got[e.Code] = now.Sub(e.Time)
	}
	want := map[uint64]time.Duration{13: time.Minute, 31: 90 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ago (-want +got):\n%s", diff)
	}
}

// Of a file that has grown for years only the end is read.
func TestPastIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages")
	filler := "May  4 10:06:00 host kernel: usb 1-1: " + strings.Repeat("x", 4000) + "\n"
	write(t, path, record(1, 13)+strings.Repeat(filler, 17<<20/len(filler))+record(2, 31), 0)
	h := newHeard()
	start(t, kernellog.Options{Path: path, Emit: h.emit})
	if diff := cmp.Diff([]string{"past 31"}, h.take()); diff != "" {
		t.Error(diff)
	}
}
