// Package kernellog reads faults of accelerators from the kernel log: Xids and
// SXids of NVIDIA's driver, hangs, resets and errors of AMD's, firewalls, stopped clocks
// and failed loads of FPGAs, devices that fell off the bus or could not be started, PCIe
// errors, and loads of the driver. It confirms what NVML reports,
// and is the only source for a dead driver or a GPU that has left the bus.
//
// It guarantees: each line of a known form becomes exactly one event, whatever
// their rate; a line of an unknown form becomes no event and is counted; events
// from before the log was opened have Past set. It never writes to the log and
// never guesses a code, an address or a time.
//
// A line is accepted only where it begins as the kernel prints it, so that a
// process cannot forge one by its name or its arguments.
package kernellog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Name is the name of the Source.
const Name = "kernellog"

// DefaultPath is the kernel's own log device (Documentation/ABI/testing/dev-kmsg).
const DefaultPath = "/dev/kmsg"

// retryEvery is the time between two attempts to open a log.
var retryEvery = 30 * time.Second

// Options are the settings of a Source. Emit is required.
type Options struct {
	// Path is the log; "" is DefaultPath. A regular file is followed as it
	// grows, through truncation and replacement; it may contain records as in
	// /dev/kmsg, or lines as printed by dmesg, syslog or the journal. On many
	// systems any user can write a line to a file of syslog.
	Path string
	// Sysfs is the root of sysfs; "" is /sys. It has the version of the loaded
	// driver, and the kind of device that a PCIe error belongs to.
	Sysfs string
	// Emit receives each event, in the order of the log. One goroutine calls
	// it; it must not block.
	Emit func(collector.Event)
	// Now and Boot replace the clocks: the time of day, and the time of day at
	// which the kernel's log clock was 0.
	Now, Boot func() time.Time
}

// Source follows one kernel log.
type Source struct {
	opts  Options
	begin sync.Once
	loop  sync.WaitGroup
	ready chan struct{} // closed when the log's past has been read, or cannot be

	mu     sync.Mutex
	closed bool
	stop   chan struct{}
	open   []*os.File
	err    error // why the log is not followed
	counts counts
	lines  []string // the latest lines of drivers and of the PCI core

	reader *reader // of the goroutine
}

// maxLines bounds the lines that are kept, and maxKept each of them in bytes.
const (
	maxLines = 500
	maxKept  = 500
)

// Lines returns the latest lines of drivers and of the PCI core, each with its time. The
// lines around a fault explain it, also where they are no events. Other lines of the
// kernel, which name users and addresses, are not kept. known is false where the log
// could not be read: an empty list then does not mean that the kernel logged nothing.
func (s *Source) Lines() (lines []string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines), s.err == nil || len(s.lines) > 0
}

func (s *Source) keep(at time.Time, text []byte) {
	line := strings.ToValidUTF8(string(text[:min(len(text), maxKept)]), "\uFFFD")
	if !at.IsZero() {
		line = at.UTC().Format(time.RFC3339) + " " + line
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == maxLines {
		s.lines = slices.Delete(s.lines, 0, 1)
	}
	s.lines = append(s.lines, line)
}

// counts are the values that Sample returns.
type counts struct {
	lost, xids, sxids atomic.Uint64
	begin             atomic.Int64 // the time of the first record, 0 while it is not known
}

var (
	_ collector.Source = (*Source)(nil)

	malformedXid  = []string{string(collector.EventXid)}
	malformedSXid = []string{string(collector.EventSXid)}
)

// New returns a Source. It starts to follow the log with the first Sample, so
// that no event precedes the Sampler.
func New(o Options) *Source {
	if o.Path == "" {
		o.Path = DefaultPath
	}
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Boot == nil {
		o.Boot = bootTime
	}
	return &Source{opts: o, ready: make(chan struct{}), stop: make(chan struct{})}
}

// Name returns "kernellog".
func (s *Source) Name() string { return Name }

// Sample returns the state of the log reader. The first call waits until the
// log's past has been emitted. The error is ErrAbsent where there is no log,
// and names the missing permission where it cannot be read.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	s.begin.Do(func() { s.loop.Go(s.run) })
	select {
	case <-s.ready:
	case <-ctx.Done():
		return collector.Round{}, fmt.Errorf("read the past of %s: %w", s.opts.Path, ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return collector.Round{}, s.err
	}
	node := []collector.Reading{
		{Metric: collector.KernelLogLost, Value: float64(s.counts.lost.Load())},
		{Metric: collector.KernelLogMalformed, Labels: malformedXid, Value: float64(s.counts.xids.Load())},
		{Metric: collector.KernelLogMalformed, Labels: malformedSXid, Value: float64(s.counts.sxids.Load())},
	}
	if begin := s.counts.begin.Load(); begin != 0 {
		node = append(node, collector.Reading{Metric: collector.KernelLogBegin, Value: float64(begin)})
	}
	return collector.Round{Node: node}, nil
}

// Close ends the goroutine that follows the log. No event is emitted after it
// returns.
func (s *Source) Close() error {
	s.begin.Do(func() {}) // not started yet: it never will be
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
		for _, f := range s.open {
			f.Close() // ends a blocked read
		}
	}
	s.mu.Unlock()
	s.loop.Wait()
	return nil
}

// run follows the log, and retries where it cannot be opened or has ended.
func (s *Source) run() {
	s.reader = newReader(s)
	var once sync.Once
	ready := func() { once.Do(func() { close(s.ready) }) }
	defer ready()
	for {
		err := s.follow(ready)
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.err = explain(err)
		s.mu.Unlock()
		ready()
		select {
		case <-s.stop:
			return
		case <-time.After(retryEvery):
		}
	}
}

// follow opens the log and reads it until it ends or the Source is closed. It
// calls ready when the log's past has been read.
func (s *Source) follow(ready func()) error {
	l, err := s.openLog(s.opts.Path)
	if err != nil {
		return err
	}
	defer func() { s.release(l.handle()) }()
	s.reader.attach(l)
	err = l.follow(s.stop, s.reader, func() {
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		ready()
	})
	return fmt.Errorf("follow %s: %w", s.opts.Path, err)
}

// explain adds to an error of the log that a file which does not exist is a log
// that the node does not have, and which permission is missing.
func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", collector.ErrAbsent, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (the kernel log takes CAP_SYSLOG where the sysctl kernel.dmesg_restrict is 1, and in a container the device itself)", err)
	}
	return err
}

// openLog opens path and keeps the file for Close.
func (s *Source) openLog(path string) (follower, error) {
	f, err := s.openFile(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		s.release(f)
		return nil, err
	}
	if st.Mode().IsRegular() {
		return &fileLog{source: s, path: path, file: f, opened: st}, nil
	}
	return &stream{file: f, past: true}, nil
}

func (s *Source) openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return f, s.own(f)
}

// own keeps a file for Close, or closes it if the Source is closed.
func (s *Source) own(f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		f.Close()
		return os.ErrClosed
	}
	s.open = append(s.open, f)
	return nil
}

// release closes a file and forgets it.
func (s *Source) release(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o *os.File) bool { return o == f })
	f.Close()
}

// follower is an opened log.
type follower interface {
	// follow feeds r until the log ends, with the reason as error, or stop is
	// closed. It calls ready once the past of the log has been fed.
	follow(stop <-chan struct{}, r *reader, ready func()) error
	// isPast reports whether a line was in the log when it was opened; offset is its
	// place in the bytes that the log has fed last.
	isPast(offset int) bool
	handle() *os.File
}
