package collector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// maxEvents is how many of the latest events a Snapshot holds.
const maxEvents = 256

// Sampler calls every Source on its own tick and publishes what they yield.
// A source that fails, or does not return, costs its own devices' gauges and
// nothing else.
type Sampler struct {
	latest  atomic.Pointer[Snapshot]
	changed chan struct{} // capacity 1: something is to be published

	mu       sync.Mutex
	settings Settings
	sources  []*sourceState
	events   []Event
	seq      uint64
	waiters  []chan struct{}
}

// NewSampler returns a Sampler of no source; Add gives it some.
func NewSampler(s Settings) *Sampler {
	return &Sampler{settings: s, changed: make(chan struct{}, 1)}
}

// Add registers a source. It must be called before Run.
func (s *Sampler) Add(src Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, newSourceState(src))
}

// Apply replaces the settings; rounds that begin later follow them.
func (s *Sampler) Apply(set Settings) {
	s.mu.Lock()
	s.settings = set
	for _, st := range s.sources {
		st.extendBaseline(set.XidBaseline)
	}
	s.mu.Unlock()
	s.Wake("") // the interval that is being waited out may be the old one
	s.touch()
}

// Wake has the next round of a source begin at once, not at its tick: what it
// would say has changed. All sources are woken where name is "".
func (s *Sampler) Wake(name string) {
	for _, st := range s.sources {
		if name != "" && name != st.src.Name() {
			continue
		}
		select {
		case st.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// Latest returns the newest Snapshot, nil before the first.
func (s *Sampler) Latest() *Snapshot { return s.latest.Load() }

// Next returns a channel that is closed when the next Snapshot is published.
// A caller that must miss none calls it before Latest.
func (s *Sampler) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.waiters = append(s.waiters, c)
	return c
}

// Emit takes an event from a source. It does not block.
func (s *Sampler) Emit(e Event) {
	if !timestamp.Contains(seconds(e.Time)) {
		e.Time = time.Now() // its origin did not know, or the clock was mad
	}
	s.mu.Lock()
	for _, st := range s.sources {
		if st.src.Name() == e.Source {
			st.count(e)
		}
	}
	if s.events = append(s.events, e); len(s.events) > maxEvents {
		s.events = append(s.events[:0], s.events[len(s.events)-maxEvents:]...)
	}
	s.mu.Unlock()
	s.touch()
}

func (s *Sampler) touch() {
	select {
	case s.changed <- struct{}{}:
	default: // a publication that has not begun yet will see the change
	}
}

// Run samples until ctx is done and then closes the sources. A source whose
// Sample does not return is given up after closeGrace and not closed. The
// error is the first of those sources that could not be closed, never ctx's.
func (s *Sampler) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, st := range s.sources {
		loops.Go(func() { s.loop(ctx, st) })
	}
	s.touch()
	for {
		select {
		case <-s.changed:
			s.publish(time.Now())
		case <-ctx.Done():
			loops.Wait()
			return s.close()
		}
	}
}

func (s *Sampler) close() error {
	var first error
	for _, st := range s.sources {
		err := errors.New("its Sample has not returned")
		if !st.inFlight {
			err = st.src.Close()
		}
		if err != nil && first == nil {
			first = fmt.Errorf("close %s: %w", st.src.Name(), err)
		}
	}
	return first
}

// outcome is what one call of Sample returned.
type outcome struct {
	round Round
	err   error
	took  time.Duration
}

// loop drives one source: one call at a time, given up after its timeout but
// never overtaken.
func (s *Sampler) loop(ctx context.Context, st *sourceState) {
	returned := make(chan outcome, 1)
	busy, overdue := false, false
	tick := time.NewTimer(0)
	defer tick.Stop()
	deadline := time.NewTimer(time.Hour)
	deadline.Stop()
	next := time.Now()
	for {
		select {
		case <-ctx.Done():
			if busy {
				st.inFlight = !await(returned, closeGrace)
			}
			return
		case <-tick.C:
			interval, timeout := s.pace(st)
			if !busy {
				busy, overdue = true, false
				deadline.Reset(timeout)
				go call(ctx, st.src, timeout, returned)
			}
			if next = next.Add(interval); time.Until(next) <= 0 {
				next = time.Now().Add(interval) // late: skip, do not catch up
			}
			tick.Reset(time.Until(next))
		case <-st.wake:
			next = time.Now().Add(-time.Nanosecond)
			tick.Reset(0)
		case <-deadline.C:
			if !busy {
				break
			}
			overdue = true
			s.update(func(time.Time) { st.overdue() })
		case o := <-returned:
			busy = false
			deadline.Stop()
			if overdue {
				o = o.late()
			}
			s.update(func(now time.Time) { st.returned(now, o, &s.settings) })
		}
	}
}

// late is the outcome of a round that came back after it was given up: what
// it read is of the past, what it counted and why it failed are not.
func (o outcome) late() outcome {
	err := fmt.Errorf("%w: round returned after %v", context.DeadlineExceeded, o.took.Round(time.Millisecond))
	if o.err != nil {
		err = fmt.Errorf("%w: %w", err, o.err)
	}
	return outcome{round: Round{Calls: o.round.Calls}, err: err, took: o.took}
}

const (
	// grace is what a source has beyond the deadline in its context, to
	// return what it has by then.
	grace = 250 * time.Millisecond
	// closeGrace is what a Sample has to return when everything ends; ending
	// a worker by force takes less.
	closeGrace = 2 * time.Second
)

// await reports whether the call in flight returned within d.
func await(returned <-chan outcome, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-returned:
		return true
	case <-t.C:
		return false
	}
}

func (s *Sampler) pace(st *sourceState) (interval, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings.interval(), s.settings.timeout(st.src.Name()) + grace
}

func call(ctx context.Context, src Source, timeout time.Duration, returned chan<- outcome) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout-grace)
	defer cancel()
	var o outcome
	defer func() {
		if p := recover(); p != nil {
			o = outcome{err: fmt.Errorf("panic: %v", p)}
		}
		o.took = time.Since(start)
		returned <- o
	}()
	o.round, o.err = src.Sample(ctx)
}

func (s *Sampler) update(f func(now time.Time)) {
	s.mu.Lock()
	f(time.Now())
	s.mu.Unlock()
	s.touch()
}

func (s *Sampler) publish(now time.Time) {
	s.mu.Lock()
	s.seq++
	snap := &Snapshot{Seq: s.seq, Time: now, Events: append([]Event(nil), s.events...)}
	for _, st := range s.sources {
		st.render(snap)
	}
	sortDevices(snap.Devices)
	s.latest.Store(snap)
	waiters := s.waiters
	s.waiters = nil
	s.mu.Unlock()
	for _, w := range waiters {
		close(w)
	}
}
