//go:build linux && cgo

package nvidia

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
)

// Source reads NVIDIA GPUs through NVML.
type Source struct {
	options Options
	emit    func(collector.Event)

	lib    *library
	system *system
	// opening and driver are the goroutines that load the library and that call
	// what belongs to no GPU; gpus has one goroutine per enumerated GPU.
	opening *solo.Worker[error]
	driver  *solo.Slot[driverAnswer]
	gpus    []*slot
	claims  *claims
	// leaving are the goroutines of abandoned indexes, until the calls they are
	// in have returned.
	leaving []*slot
	// counted: the driver has returned the number of GPUs. node are its
	// readings of the node.
	counted bool
	node    []collector.Reading
	events  *events
	// devices is the number of devices in the previous round.
	devices int
	closed  atomic.Bool
}

// slot is one index of the enumeration: the goroutine that reads the GPU there
// and its last answer.
type slot struct {
	solo.Slot[gpuAnswer]
	gpu   *gpu
	index int
	// count is the number of GPUs when the call was made.
	count int
	// known is the identity of the GPU and its MIG devices.
	known   []collector.Device
	sampled time.Time
	// mig: the GPU is in MIG mode. direct: its NVLinks lead to other GPUs.
	mig, direct bool
	// last is the last answer of the GPU, or that it is stuck.
	last []collector.Device
}

// New returns a Source that passes its events to emit, which must not block for
// long. The first Sample opens the library.
func New(o Options, emit func(collector.Event)) *Source {
	if o.SlowInterval <= 0 {
		o.SlowInterval = defaultSlowInterval
	}
	return &Source{options: o, emit: emit, claims: &claims{owners: map[nvml.Device]claim{}}}
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// Sample implements collector.Source. It returns shortly before ctx's deadline
// with the devices that have answered.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	r, cancel := solo.Begin(ctx)
	defer cancel()
	if err := s.open(r.End); err != nil {
		return collector.Round{Calls: s.lateCalls()}, err
	}
	return s.read(r)
}

// open loads and initializes the library once. The next Sample waits again for
// a call that hangs; it is never made twice.
func (s *Source) open(end <-chan struct{}) error {
	if s.driver != nil {
		return nil
	}
	if s.opening == nil {
		s.opening = solo.New(func(time.Time) error { return s.openLibrary() }, nil)
	}
	if !s.opening.Busy {
		s.opening.Start(time.Now())
	}
	err, done := s.opening.Await(end)
	if !done {
		return fmt.Errorf("nvmlInit has not returned: %w", context.DeadlineExceeded)
	}
	if err != nil {
		return err
	}
	s.opening.Stop()
	s.events = newEvents(s.lib, &s.options, s.emit)
	s.driver = &solo.Slot[driverAnswer]{Worker: solo.New(s.system.read, nil)}
	return nil
}

func (s *Source) openLibrary() error {
	if s.lib == nil {
		lib, err := load(s.options.Library, s.options.Procfs)
		if err != nil {
			return err
		}
		s.lib = lib
		lib.sysfs, lib.procfs, lib.foreign = s.options.Sysfs, s.options.Procfs, foreignPIDs(s.options.Procfs)
		s.system = &system{asker: newAsker(lib, new(round)), lib: lib}
	}
	if err := s.lib.init(&s.system.asker); err != nil {
		return err
	}
	version, _ := ask(&s.system.asker, callDriverVersion, s.lib.api.SystemGetDriverVersion)
	s.lib.fieldIDs = numberingOf(version)
	s.lib.avoidOtherLayouts(version)
	return nil
}

// lateCalls are the error counts of an initialization that has returned.
func (s *Source) lateCalls() []collector.CallError {
	if s.opening == nil || s.opening.Busy || s.system == nil {
		return nil
	}
	calls, _ := s.system.take()
	return calls
}

// read asks the driver for the number of GPUs, which decides whether a handle is still
// that of its index, then starts the calls of all GPUs at once, and gathers the answers
// that arrive in time.
func (s *Source) read(r *solo.Round) (collector.Round, error) {
	t := tally{}
	take := func(d driverAnswer) bool {
		s.enumerated(d, r, &t)
		return s.counted
	}
	s.driver.Ask(r, take)
	s.driver.Valid = s.counted // an old number is better than none
	s.driver.Gather(r, take)
	for _, slot := range s.gpus {
		if slot.Asked.Before(r.Begun) {
			slot.ask(r, &t)
		}
	}
	if s.driver.Stuck {
		t.fail("driver", fmt.Errorf("nvmlDeviceGetCount has not returned: %w", context.DeadlineExceeded))
		s.node = slices.DeleteFunc(slices.Clone(s.node), func(r collector.Reading) bool { return !r.Metric.Kind.Stays() })
	}
	for _, slot := range s.gpus {
		slot.gather(r, &t)
	}
	t.dropLinksToMIG()
	s.devices = len(t.devices)
	s.events.commit()
	t.calls(s.events.calls())
	locate(t.devices, s.options.Sysfs, s.options.Procfs)
	round := collector.Round{Devices: distinct(t.devices), Node: s.node, Calls: t.counts}
	if ret := t.gone(); ret != nvml.SUCCESS {
		return collector.Round{Calls: t.counts}, fmt.Errorf("%w: %s", collector.ErrRestart, code(ret))
	}
	if t.unlisted != "" {
		return collector.Round{Calls: t.counts}, fmt.Errorf("%w: it does not list %s, which was bound to the driver later", collector.ErrRestart, t.unlisted)
	}
	return round, errors.Join(t.errors...)
}

// enumerated takes an answer of the driver goroutine and follows the number of
// enumerated GPUs.
func (s *Source) enumerated(d driverAnswer, r *solo.Round, t *tally) {
	t.calls(d.calls)
	t.restart, t.unlisted = d.stale, d.unlisted
	t.fail("driver", d.err)
	s.node = d.node
	if !d.counted {
		return
	}
	s.counted = true
	for i := len(s.gpus); i < d.count; i++ {
		s.gpus = append(s.gpus, s.newSlot(i))
		s.gpus[i].ask(r, t)
	}
	for len(s.gpus) > d.count {
		s.leave(s.gpus[len(s.gpus)-1])
		s.gpus = s.gpus[:len(s.gpus)-1]
	}
	for i, sl := range s.gpus {
		if sl.count != d.count {
			sl.gpu.moved.Store(true)
		}
		if !sl.Busy || sl.Asked.Equal(r.Begun) {
			sl.count = d.count
		} else if sl.count != d.count && r.Begun.Sub(sl.Asked) >= r.Timeout {
			// Another GPU may have this index by now. It must not wait for a
			// call to the previous one.
			s.leave(sl)
			s.gpus[i] = s.newSlot(i)
			s.gpus[i].count = d.count
			s.gpus[i].ask(r, t)
		}
	}
}

func (s *Source) newSlot(index int) *slot {
	g := &gpu{
		asker: newAsker(s.lib, new(round)), index: index, lib: s.lib, events: s.events,
		slow: s.options.SlowInterval, claims: s.claims,
	}
	return &slot{Slot: solo.Slot[gpuAnswer]{Worker: solo.New(g.read, nil)}, gpu: g, index: index}
}

// leave abandons an index. Its goroutine ends when the call it is in returns.
func (s *Source) leave(sl *slot) {
	sl.gpu.left.Store(true)
	sl.Stop()
	gone := make(chan struct{})
	close(gone)
	s.leaving = slices.DeleteFunc(s.leaving, func(l *slot) bool { return l.Stopped(gone) })
	s.leaving = append(s.leaving, sl)
}

// ask starts a read of the GPU.
func (sl *slot) ask(r *solo.Round, t *tally) {
	sl.Ask(r, func(a gpuAnswer) bool { return sl.take(a, t) })
}

// take stores an answer.
func (sl *slot) take(a gpuAnswer, t *tally) bool {
	t.calls(a.calls)
	t.stale(a)
	t.fail(idOf(a.known), a.err)
	sl.known = a.known
	if a.down != "" {
		a.devices = down(nil, a.known, a.down, sl.sampled)
	} else if len(a.devices) > 0 {
		sl.sampled, sl.mig, sl.direct = a.devices[0].Sampled, a.mig, a.direct
	}
	sl.last = a.devices
	return len(a.devices) > 0
}

// gather adds the GPU's answer.
func (sl *slot) gather(r *solo.Round, t *tally) {
	sl.Gather(r, func(a gpuAnswer) bool { return sl.take(a, t) })
	if sl.Stuck {
		known := sl.known
		if len(known) == 0 {
			known = []collector.Device{place(sl.index)}
		}
		sl.last = down(nil, known, collector.ReasonStuck, sl.sampled)
		t.fail(idOf(known), errNotReturned)
	}
	t.mig = t.mig || sl.mig
	if sl.direct {
		t.direct = append(t.direct, len(t.devices))
	}
	t.devices = append(t.devices, sl.last...)
	for i := range sl.last {
		sl.last[i].Rejects = nil // they must not be counted again when the answer is reused
	}
}
