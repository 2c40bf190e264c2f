//go:build linux && cgo

package nvidia

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Source reads NVIDIA GPUs through NVML.
type Source struct {
	options Options
	emit    func(collector.Event)

	lib    *library
	system *system
	// opening and driver are the goroutines that load the library and that
	// ask what is no GPU's; gpus are one goroutine per enumerated GPU.
	opening *worker[error]
	driver  *worker[driverAnswer]
	gpus    []*slot
	events  *events
	// devices is how many the last round had.
	devices int
	closed  atomic.Bool
}

// slot is one place of the enumeration: the goroutine that reads the GPU there
// and what it last said.
type slot struct {
	*worker[gpuAnswer]
	// known is the GPU and its MIG devices with their identity only.
	known   []collector.Device
	sampled time.Time
	ready   bool
}

// New returns a Source that delivers its events to emit, which must not block
// for long. The library is opened by the first Sample.
func New(o Options, emit func(collector.Event)) *Source {
	if o.SlowInterval <= 0 {
		o.SlowInterval = defaultSlowInterval
	}
	return &Source{options: o, emit: emit}
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// Sample implements collector.Source. It returns a little before ctx's
// deadline with the devices that have answered by then.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return collector.Round{Calls: s.lateCalls()}, err
	}
	return s.read(ctx)
}

// withMargin takes a twentieth off the deadline, so that an answer is on its
// way before the caller gives up.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	return context.WithDeadline(ctx, deadline.Add(-min(left/20, 100*time.Millisecond)))
}

// open loads and initialises the library, once; a call that hangs is waited
// for again by the next Sample and never repeated behind itself.
func (s *Source) open(ctx context.Context) error {
	if s.driver != nil {
		return nil
	}
	if s.opening == nil {
		s.opening = newWorker(func(time.Time) error { return s.openLibrary() })
	}
	if !s.opening.busy {
		s.opening.start(time.Now())
	}
	err, done := s.opening.wait(ctx.Done())
	if !done {
		return fmt.Errorf("nvmlInit has not returned: %w", context.DeadlineExceeded)
	}
	if err != nil {
		return err
	}
	s.opening.stop()
	s.events = newEvents(s.lib, s.emit)
	s.driver = newWorker(s.system.read)
	return nil
}

func (s *Source) openLibrary() error {
	if s.lib == nil {
		lib, err := load(s.options.Library)
		if err != nil {
			return err
		}
		s.lib = lib
		s.system = newSystem(lib, s.options.SlowInterval)
	}
	return s.lib.init(&s.system.asker)
}

// lateCalls are the counts of an initialisation that has returned.
func (s *Source) lateCalls() []collector.CallError {
	if s.opening == nil || s.opening.busy || s.system == nil {
		return nil
	}
	calls, _ := s.system.take()
	return calls
}

// read asks everything at once and gathers what comes in time.
func (s *Source) read(ctx context.Context) (collector.Round, error) {
	now := time.Now()
	t := tally{devices: make([]collector.Device, 0, s.devices)}
	late, _ := s.driver.start(now)
	t.calls(late.calls)
	for i := range s.gpus {
		s.start(i, now, &t)
	}
	d, answered := s.driver.wait(ctx.Done())
	if !answered {
		t.fail("driver", fmt.Errorf("nvmlDeviceGetCount has not returned: %w", context.DeadlineExceeded))
	}
	t.calls(d.calls)
	t.stale(d.fatal)
	t.fail("driver", d.err)
	if d.counted {
		s.resize(d.count, now, &t)
	}
	for _, slot := range s.gpus {
		slot.gather(ctx.Done(), &t)
	}
	s.devices = len(t.devices)
	s.events.commit()
	t.calls(s.events.calls())
	round := collector.Round{Devices: distinct(t.devices), Node: d.node, Calls: t.counts}
	if t.restart != nvml.SUCCESS {
		return collector.Round{Calls: t.counts}, fmt.Errorf("%w: %s", collector.ErrRestart, code(t.restart))
	}
	return round, errors.Join(t.errors...)
}

func (s *Source) start(i int, now time.Time, t *tally) {
	late, started := s.gpus[i].start(now)
	t.calls(late.calls)
	s.gpus[i].ready = started
}

// resize follows the number of GPUs that the driver enumerates.
func (s *Source) resize(count int, now time.Time, t *tally) {
	for i := len(s.gpus); i < count; i++ {
		g := newGPU(i, s.lib, s.events, s.options.SlowInterval)
		s.gpus = append(s.gpus, &slot{worker: newWorker(g.read)})
		s.start(i, now, t)
	}
	for len(s.gpus) > count {
		last := s.gpus[len(s.gpus)-1]
		last.stop()
		s.gpus = s.gpus[:len(s.gpus)-1]
	}
}

// gather takes the answer of a GPU, or says that there is none.
func (sl *slot) gather(done <-chan struct{}, t *tally) {
	var a gpuAnswer
	answered := false
	if sl.ready {
		a, answered = sl.wait(done)
	}
	if !answered {
		t.devices = down(t.devices, sl.known, collector.ReasonStuck, sl.sampled)
		t.fail(idOf(sl.known), fmt.Errorf("a call has not returned: %w", context.DeadlineExceeded))
		return
	}
	t.calls(a.calls)
	t.stale(a.fatal)
	sl.known = a.known
	t.fail(idOf(a.known), a.err)
	if a.down != "" {
		t.devices = down(t.devices, a.known, a.down, sl.sampled)
		return
	}
	if len(a.devices) > 0 {
		sl.sampled = a.devices[0].Sampled
	}
	t.devices = append(t.devices, a.devices...)
}
