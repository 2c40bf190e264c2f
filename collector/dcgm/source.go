//go:build linux && cgo

package dcgm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Source reads a host engine of DCGM.
type Source struct {
	options Options
	emit    func(collector.Event)

	mu     sync.Mutex
	engine *engine // nil until connected
	closed bool
}

// New returns a Source that passes its events to emit, which must not block for
// long. The first Sample loads the library. The error is about contradictory
// options.
func New(o Options, emit func(collector.Event)) (*Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.defaults()
	return &Source{options: o, emit: emit}, nil
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// errClosed is the error of a Sample after Close.
var errClosed = errors.New("source is closed")

// Sample implements collector.Source. It does not return while a call hangs:
// the parent process gives the worker up. An error that ends the connection is
// an ErrEngine, which requires a new process: go-dcgm supports one connection
// per process.
func (s *Source) Sample(context.Context) (collector.Round, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return collector.Round{}, errClosed
	}
	if s.engine == nil {
		e, err := connect(&s.options, s.emit)
		if err != nil {
			return collector.Round{}, err
		}
		s.engine = e
	}
	round, c := s.engine.sample(time.Now())
	round.Calls = s.engine.calls.take()
	if c != ok {
		return collector.Round{Calls: round.Calls}, fmt.Errorf("%w: %s", collector.ErrEngine, c)
	}
	if len(s.engine.devices) == 0 {
		return round, fmt.Errorf("%w: the host engine reports no device; it needs NVML for GPUs", collector.ErrAbsent)
	}
	return round, nil
}

// Close implements collector.Source: it destroys everything made at the host
// engine. It does nothing while a call hangs.
func (s *Source) Close() error {
	if !s.mu.TryLock() {
		return errors.New("a call has not returned")
	}
	defer s.mu.Unlock()
	s.closed = true
	if s.engine != nil {
		s.engine.close()
		s.engine = nil
	}
	return nil
}

// sample performs one round. A code other than ok ends the connection.
func (e *engine) sample(now time.Time) (collector.Round, code) {
	if c := e.follow(now); c != ok {
		return collector.Round{}, c
	}
	e.clock(now)
	for _, d := range e.devices {
		d.begin()
	}
	clear(e.taken)
	if len(e.watches) == 0 {
		// Nothing else may call the host engine for a while.
		if _, c := e.list(gpus); c.gone() {
			return collector.Round{}, c
		}
	}
	for _, w := range e.watches {
		if c := e.read(w, func(r *record) { e.take(r, now) }); c.gone() {
			return collector.Round{}, c
		}
	}
	for _, read := range []func(*engine, time.Time) code{e.profiler.read, e.health.read} {
		if c := read(e, now); c != ok {
			return collector.Round{}, c
		}
	}
	return e.round(now), ok
}

// clock notes whether the clock was set since the last round.
func (e *engine) clock(now time.Time) {
	e.set = !e.last.IsZero() && collector.ClockSet(e.last, now) != 0
	e.last = now
}

// round collects what was read. A device without an identity is left out. A device
// without a recent value does not answer, whatever its status is: the host engine has
// none for a GPU that is lost, which only the Xid of the loss reveals.
func (e *engine) round(now time.Time) collector.Round {
	round := collector.Round{Node: []collector.Reading{e.info()}}
	for _, x := range slices.SortedFunc(maps.Keys(e.devices), compareEntities) {
		if d := e.devices[x]; d.identity.ID != "" {
			if d.fell > d.newest && d.now.Down == "" {
				d.now.Down = collector.ReasonLost
			}
			if !d.latest.IsZero() {
				d.now.Sampled = d.latest
				if now.Sub(d.latest) > e.options.stale() && d.now.Down == "" {
					d.now.Down = collector.ReasonStuck
				}
			}
			round.Devices = append(round.Devices, d.now)
		}
	}
	return round
}
