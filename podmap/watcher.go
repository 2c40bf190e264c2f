package podmap

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Watcher keeps a Map current.
type Watcher struct {
	opts    Options
	client  *client
	latest  atomic.Pointer[Map]
	refresh chan struct{}
	changed chan struct{}

	mu        sync.Mutex // guards the fields below
	ledger    *ledger
	status    Status
	sawSocket bool // there has been a socket
}

// New returns a Watcher that does nothing before Run.
func New(opts Options) *Watcher {
	w := &Watcher{
		opts:    opts.withDefaults(),
		refresh: make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
	}
	w.client = &client{opts: &w.opts}
	w.ledger = newLedger(w.opts.Settle, w.opts.Self)
	w.ledger.adminAccess = w.opts.AdminAccess
	w.status = Status{State: StateStarting, Calls: map[Outcome]uint64{}}
	w.latest.Store(&Map{State: StateStarting})
	return w
}

// Run calls the kubelet until ctx is done, with at most one call in flight. It
// must be called once.
func (w *Watcher) Run(ctx context.Context) {
	defer w.client.close()
	failures := 0
	for {
		outcome := w.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		if outcome == OutcomeOK || outcome == OutcomeNoSocket {
			failures = 0
		} else {
			failures++
		}
		if !w.wait(ctx, w.pause(failures)) {
			return
		}
	}
}

// pause is the time to the next list: after failures 1 s, 2 s, 4 s, up to the
// interval.
func (w *Watcher) pause(failures int) time.Duration {
	if failures == 0 {
		return w.opts.Interval
	}
	return min(w.opts.Interval, shortest<<min(failures-1, 10))
}

// wait returns when the next list is due, or false when ctx is done.
func (w *Watcher) wait(ctx context.Context, pause time.Duration) bool {
	ended := time.Now()
	due := time.NewTimer(pause)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-w.refresh:
			due.Reset(max(0, time.Until(ended.Add(min(pause, shortest)))))
		}
	}
}

// Refresh requests a list now, or as soon as the latest is one second old. It
// does not wait.
func (w *Watcher) Refresh() {
	select {
	case w.refresh <- struct{}{}:
	default:
	}
}

// Latest returns the current Map. It is never nil.
func (w *Watcher) Latest() *Map { return w.latest.Load() }

// Changed yields when Latest has changed in more than its times: allocations,
// allocatable devices or the State. Several changes without a receiver yield
// once. It is for one receiver.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Status returns the state of the Watcher.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status.clone()
	if !s.Time.IsZero() {
		s.Age = time.Since(s.Time)
	}
	return s
}

// poll calls the kubelet once and publishes the result.
func (w *Watcher) poll(ctx context.Context) Outcome {
	began := time.Now()
	list, outcome, err := w.client.list(ctx)
	known, list, outcome, err := w.confirm(ctx, list, outcome, err)
	answered := time.Now()
	connection, born := w.client.dials.Load(), w.client.born()
	latest := w.latest.Load()
	allocatable, allocatableTime := latest.Allocatable, latest.AllocatableTime
	var alsoErr error
	if outcome == OutcomeOK {
		var resources []Allocatable
		if resources, alsoErr = w.client.allocatable(ctx); alsoErr == nil {
			allocatable, allocatableTime = resources, time.Now()
		}
	}
	if ctx.Err() != nil {
		return outcome
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(outcome, err, alsoErr)
	w.status.Took = answered.Sub(began)
	if outcome == OutcomeOK {
		w.ledger.take(answered, connection, born, list, known)
	}
	w.publish(allocatable, allocatableTime)
	return outcome
}

// confirm finds out whether a list is complete, if it is not known of the connection yet
// and the kubelet reports it. A list that is complete was requested after the kubelet had
// reported that, from the same process: another one has another connection.
func (w *Watcher) confirm(ctx context.Context, list *answer, outcome Outcome, err error) (certainty, *answer, Outcome, error) {
	connection := w.client.dials.Load()
	if outcome != OutcomeOK || w.opts.Ready == nil || w.ledger.settledOn(connection) {
		return inferred, list, outcome, err
	}
	ready, known := w.opts.Ready(ctx)
	switch {
	case !known:
		return inferred, list, outcome, err
	case !ready:
		return incomplete, list, outcome, err
	}
	list, outcome, err = w.client.list(ctx)
	if w.client.dials.Load() != connection {
		return incomplete, list, outcome, err
	}
	return complete, list, outcome, err
}
