// Package kernellog reads faults of accelerators from the kernel log: Xids and
// SXids of NVIDIA's driver, GPUs that fell off the bus, PCIe errors, and the
// loading of the driver. It is the second witness of what NVML tells, and the
// only one of what a dead driver or a vanished GPU can no longer tell.
//
// It promises: every line of a known form becomes exactly one event, however
// many come at once; a line of an unknown form becomes none and is counted;
// what the log held before it was opened is told with Past set. It never
// writes to the log and never invents a code, an address or a time.
//
// A line is believed only where it begins as the kernel prints it, so that a
// process cannot forge one with its name or its arguments.
package kernellog

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Name is the name of the Source.
const Name = "kernellog"

// DefaultPath is the kernel's own log device (Documentation/ABI/testing/dev-kmsg).
const DefaultPath = "/dev/kmsg"

// retryEvery is how long a log that cannot be opened is left alone.
const retryEvery = 30 * time.Second

// Options says which log to follow and where its events go. Emit is required.
type Options struct {
	// Path is the log; "" stands for DefaultPath. A regular file is followed as
	// it grows, through truncation and replacement; it may hold records as
	// /dev/kmsg yields them, or lines as dmesg, syslog or the journal show them.
	Path string
	// Fallbacks are tried in order where Path is missing or cannot be read:
	// /var/log/kern.log, /var/log/messages. Anybody on the machine can have a
	// line written to some of them, so none is read unless named here.
	Fallbacks []string
	// Sysfs is the root of sysfs; "" stands for /sys. It is asked for the
	// version of the loaded driver, and for what kind of device a PCIe error is
	// told of.
	Sysfs string
	// Emit takes each event, in the order of the log. It is called by one
	// goroutine and must not block.
	Emit func(collector.Event)
	// Now and Boot replace the clocks: the time of day, and the time of day at
	// which the kernel's log clock stood at 0.
	Now, Boot func() time.Time
}

// Source follows one kernel log.
type Source struct {
	opts  Options
	begin sync.Once
	loop  sync.WaitGroup
	ready chan struct{} // closed when the log's past is read, or cannot be

	mu     sync.Mutex
	closed bool
	stop   chan struct{}
	open   []*os.File
	err    error // why nothing is followed
	labels []string
	counts counts

	reader *reader // of the loop
}

// counts are what Sample tells of the log.
type counts struct {
	records, lost, xids, sxids atomic.Uint64
}

var (
	_ collector.Source = (*Source)(nil)

	malformedXid  = []string{string(collector.EventXid)}
	malformedSXid = []string{string(collector.EventSXid)}
)

// New returns a Source that begins to follow the log with the first Sample, so
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

// Sample tells how well the log is followed. The first call waits until the
// log's past has been told. The error is ErrAbsent where there is no log, and
// names what permission is missing where it may not be read.
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
	return collector.Round{Node: []collector.Reading{
		{Metric: collector.KernelLogInfo, Labels: s.labels, Value: 1},
		{Metric: collector.KernelLogRecords, Value: float64(s.counts.records.Load())},
		{Metric: collector.KernelLogLost, Value: float64(s.counts.lost.Load())},
		{Metric: collector.KernelLogMalformed, Labels: malformedXid, Value: float64(s.counts.xids.Load())},
		{Metric: collector.KernelLogMalformed, Labels: malformedSXid, Value: float64(s.counts.sxids.Load())},
	}}, nil
}

// Close ends the goroutine that follows the log. No event is told after it has
// returned.
func (s *Source) Close() error {
	s.begin.Do(func() {}) // never began: never will
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
		for _, f := range s.open {
			f.Close() // ends the read that waits for a record
		}
	}
	s.mu.Unlock()
	s.loop.Wait()
	return nil
}

// run follows the first log that can be opened, and tries again where none can
// or where the one that could has ended.
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
		s.err = err
		s.mu.Unlock()
		ready()
		select {
		case <-s.stop:
			return
		case <-time.After(retryEvery):
		}
	}
}

// follow opens a log and reads it until it ends or the Source is closed. It
// calls ready when the log's past has been read; one that ends before that is
// as good as one that cannot be opened.
func (s *Source) follow(ready func()) error {
	var failed unreadable
	for i, path := range append([]string{s.opts.Path}, s.opts.Fallbacks...) {
		l, err := s.openLog(path)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fallback := ""
		if i > 0 {
			fallback = why(failed[0])
		}
		s.reader.attach(l)
		reached := false
		err = l.follow(s.stop, s.reader, func() {
			if !reached {
				reached = true
				s.mu.Lock()
				s.err, s.labels = nil, []string{path, fallback}
				s.mu.Unlock()
				ready()
			}
		})
		s.release(l.files()...)
		err = fmt.Errorf("follow %s: %w", path, err)
		if reached {
			return err
		}
		failed = append(failed, err)
	}
	return refusal(failed)
}
