package collector

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxEvents is the maximum number of events that the Sampler keeps, and
	// shownEvents the maximum in a Snapshot.
	maxEvents   = 4096
	shownEvents = 256
)

// Sampler calls every Source on its own tick and publishes Snapshots. A source
// that fails or hangs affects the gauges of its own devices only.
type Sampler struct {
	// Now replaces time.Now. Set it before Run.
	Now func() time.Time

	latest  atomic.Pointer[Snapshot]
	changed chan struct{} // capacity 1: something is to be published
	start   time.Time     // of Run

	mu       sync.Mutex
	settings Settings
	sources  []*sourceState
	judges   []Judge
	faults   faults
	events   []Event
	news     []Event // since the last publication
	seq      uint64
	waiters  []chan struct{}
	// addresses are the IDs of the whole devices of the latest Snapshot, by PCI
	// address.
	addresses map[string]string
}

// NewSampler returns a Sampler without sources.
func NewSampler(s Settings) *Sampler {
	return &Sampler{Now: time.Now, settings: s, changed: make(chan struct{}, 1), faults: faults{}}
}

// Add registers a source and the devices that it is expected to see. Call it
// before Run.
func (s *Sampler) Add(src Source, covers ...Cover) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := newSourceState(src)
	st.covers = covers
	s.sources = append(s.sources, st)
}

// AddJudge registers a judge. Judges run in the order of registration. Call it
// before Run.
func (s *Sampler) AddJudge(j Judge) { s.judges = append(s.judges, j) }

// Apply replaces the settings for rounds that begin later.
func (s *Sampler) Apply(set Settings) {
	s.mu.Lock()
	s.settings = set
	s.mu.Unlock()
	s.Wake("") // the current wait may have the old interval
	s.touch()
}

// Wake starts the next round of a source at once. An empty name wakes every
// source.
func (s *Sampler) Wake(name string) {
	for _, st := range s.sources {
		if name != "" && name != st.src.Name() {
			continue
		}
		select {
		case st.wake <- struct{}{}:
		default: // already requested
		}
	}
}

// Latest returns the newest Snapshot, nil before the first.
func (s *Sampler) Latest() *Snapshot { return s.latest.Load() }

// Next returns a channel that is closed when the next Snapshot is published. Call
// it before Latest to miss none.
func (s *Sampler) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.waiters = append(s.waiters, c)
	return c
}

func (s *Sampler) touch() {
	select {
	case s.changed <- struct{}{}:
	default: // the next publication includes the change
	}
}

// gather waits a moment for the rounds of a tick: sources tick together, and fast
// answers make one Snapshot. An event does not wait.
func (s *Sampler) gather(ctx context.Context) {
	for wait := s.moment(); wait > 0; wait = s.moment() {
		select {
		case <-s.changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// moment returns how long to wait for rounds in flight, and for rounds that a busy
// machine has not begun yet.
func (s *Sampler) moment() (wait time.Duration) {
	const moment, begin = 50 * time.Millisecond, 5 * time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.news) > 0 {
		return 0
	}
	since := time.Since(s.start) % s.settings.interval()
	for _, st := range s.sources {
		if time.Since(st.ticked) > since {
			wait = max(wait, begin-since)
		}
		if !st.begun.IsZero() {
			wait = max(wait, moment-time.Since(st.begun))
		}
	}
	return wait
}

// Run samples until ctx is done and then closes the sources, except sources
// whose Sample does not return within closeGrace. It returns the error of the
// first source that could not be closed, never that of ctx.
func (s *Sampler) Run(ctx context.Context) error {
	s.start = time.Now()
	var loops sync.WaitGroup
	for _, st := range s.sources {
		loops.Go(func() { s.loop(ctx, st) })
	}
	runtime.Gosched()  // workers start while Judges load what they judge by
	s.publish(s.Now()) // the sources are starting
	for {
		select {
		case <-s.changed:
			s.gather(ctx)
			s.publish(s.Now())
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

// loop calls one source on its tick, a whole number of intervals after the start of
// Run. A call is given up after its timeout; the next one starts after it has returned.
func (s *Sampler) loop(ctx context.Context, st *sourceState) {
	returned := make(chan outcome, 1)
	busy, overdue := false, false
	tick := time.NewTimer(0)
	defer tick.Stop()
	deadline := time.NewTimer(time.Hour)
	deadline.Stop()
	for {
		select {
		case <-ctx.Done():
			if busy {
				st.inFlight = !wait(returned, closeGrace)
			}
			return
		case <-tick.C:
			interval, timeout := s.pace(st, !busy)
			if !busy {
				busy, overdue = true, false
				deadline.Reset(timeout)
				go call(ctx, st.src, timeout, returned)
			} else {
				s.touch() // its age grows, also without another source
			}
			tick.Reset(interval - time.Since(s.start)%interval) // late: skip, do not catch up
		case <-st.wake:
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
			s.update(func(now time.Time) { st.begun = time.Time{}; st.returned(now, o, &s.settings) })
		}
	}
}

// late is the outcome of a round that returned after it was given up: its counts
// and its error, without its readings.
func (o outcome) late() outcome {
	err := fmt.Errorf("%w: round returned after %v", context.DeadlineExceeded, o.took.Round(time.Millisecond))
	if o.err != nil {
		err = fmt.Errorf("%w: %w", err, o.err)
	}
	return outcome{round: Round{Calls: o.round.Calls}, err: err, took: o.took}
}

const (
	// grace is the time after the deadline of its context in which a source
	// can return its readings.
	grace = 250 * time.Millisecond
	// closeGrace is the time in which a Sample must return at the end. Killing
	// a worker takes less.
	closeGrace = 4 * time.Second
)

// pace returns the interval and the timeout of a source. begin starts a round.
func (s *Sampler) pace(st *sourceState, begin bool) (interval, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.ticked = time.Now()
	if begin {
		st.begun = st.ticked
	}
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
	f(s.Now())
	s.mu.Unlock()
	s.touch()
}
