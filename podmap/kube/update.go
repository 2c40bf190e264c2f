package kube

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// take replaces the objects by a list.
func (f *feed) take(got *collection) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	now := time.Now()
	f.status.Overflow += uint64(got.overflow + f.store.replace(got.objects, now))
	f.status.Malformed += uint64(got.malformed)
	f.status.Listed, f.status.LastMessage = now, now
	f.version, f.listed, f.latest, f.broken = got.version, true, false, 0
	f.w.dirty = true
}

// begin marks a watch as open, and reports whether its list is still valid: it
// may have expired since the request.
func (f *feed) begin() bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if !f.listed {
		return false
	}
	f.status.Watching, f.status.LastMessage = true, time.Now()
	f.failing, f.broken = false, 0
	return true
}

func (f *feed) end() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.status.Watching = false
}

// event takes in one event of a watch. An ERROR event ends the watch.
func (f *feed) event(e *event) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if !slices.Contains(EventTypes, e.Type) {
		return fmt.Errorf("%w: an event of type %q", errKind, clip(e.Type))
	}
	f.status.Events[e.Type]++
	if e.Type == "ERROR" {
		s := new(status)
		e.decode(s)
		return &failure{outcome: statusOutcome(s.Code), after: waitOf(s.Details.RetryAfterSeconds), err: s}
	}
	var d document
	e.decode(&d)
	o := f.keep(&d)
	if o.kind != f.store.kind() {
		return fmt.Errorf("%w: a %q and no %s", errKind, clip(o.kind), f.store.kind())
	}
	now := time.Now()
	f.status.LastMessage = now
	if o.version != "" {
		f.version = o.version
	}
	f.status.Malformed += uint64(o.malformed)
	f.status.Overflow += uint64(o.overflow)
	switch {
	case e.Type == "BOOKMARK":
		return nil
	case !f.store.ours(o):
		f.status.Malformed++
	case e.Type == "DELETED":
		f.store.remove(o, now)
	case !f.store.put(o):
		f.status.Overflow++
	}
	f.w.dirty = true
	return nil
}

// count counts a request that has ended.
func (f *feed) count(in *map[Outcome]uint64, outcome Outcome) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	(*in)[outcome]++
	f.status.Last = outcome
}

// note records how a list or a watch ended, and returns the wait that the
// server requests.
func (f *feed) note(watch bool, err error) time.Duration {
	verb, counts := "list", &f.status.Lists
	if watch {
		verb, counts = "watch", &f.status.Watches
	}
	if err == nil {
		f.count(counts, OutcomeOK)
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		f.failing = false
		return 0
	}
	end, ok := errors.AsType[*failure](err)
	if !ok {
		end = &failure{outcome: OutcomeError, err: err}
	}
	f.count(counts, end.outcome)
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.failing = true
	f.status.LastError, f.status.LastErrorTime = fmt.Sprintf("%s %ss: %v", verb, f.store.kind(), end), time.Now()
	if watch {
		f.broken++
		if end.outcome == OutcomeExpired || end.serverBehind || f.broken >= brokenWatches {
			f.listed = false
		}
		return end.after
	}
	switch end.outcome {
	case OutcomeNotFound:
		f.path = (f.path + 1) % len(f.paths)
	case OutcomeExpired, OutcomeTimeout:
		// A server that was restored from a backup answers 504 to a version that
		// it does not have yet, and 410 to a version that is too old.
		f.latest = !f.latest
	}
	return end.after
}

// refresh updates the state, drops objects that are too old, and reports whether
// anything changed.
func (f *feed) refresh(now time.Time) bool {
	// The last message of the server is too old.
	expired := f.failing && f.ages && !f.status.LastMessage.IsZero() && now.Sub(f.status.LastMessage) >= expire
	if expired {
		f.listed = false
	}
	swept := f.store.sweep(now.Add(-linger), expired)
	was := f.status.State
	f.status.State, f.status.Reason = f.status.state(f.failing, expired)
	return swept || f.status.State != was
}
