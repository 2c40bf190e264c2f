package rules

import (
	"context"
	"time"
)

// Evaluations that events ask for leave a pause: minGap, and longer where
// evaluating takes long, so that a storm of events costs a bounded share of one
// core. No page waits for longer than maxGap: a machine that is busy is slow
// to evaluate, and has faults too.
const (
	minGap   = time.Second
	maxGap   = 2 * time.Second
	gapShare = 20 // the pause in lengths of the last evaluation
)

// Run evaluates at once, at each interval and after Trigger, until ctx is done.
func (e *Engine) Run(ctx context.Context) {
	wake := time.NewTimer(0)
	defer wake.Stop()
	page := time.Now() // when the page is to be gathered next
	asked := false
	var ready time.Time // from when on an event is heard
	last := page
	for {
		event := e.trigger
		if asked {
			event = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-event:
			asked = true
		case <-wake.C:
		}
		now := time.Now()
		if set := clockSet(last, now, e.o.Interval); set != 0 {
			e.shift(set)
			// What these read on the wall is compared with nextGroup's times.
			page, ready = now, now
		}
		last = now
		switch {
		case asked && !now.Before(ready):
			asked = false
			e.pass(ctx, now, triggered)
			ready = now.Add(min(max(minGap, gapShare*time.Since(now)), maxGap))
		case !now.Before(page) || !now.Before(e.nextGroup(page)):
			e.pass(ctx, now, due)
		}
		if !page.After(now) {
			page = page.Add(e.o.Interval * (now.Sub(page)/e.o.Interval + 1))
		}
		next := e.nextGroup(page)
		if asked && ready.Before(next) {
			next = ready
		}
		wake.Reset(time.Until(next))
	}
}

// nextGroup returns when the first group is due, at the latest at the time
// given.
func (e *Engine) nextGroup(latest time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.groups {
		if g.next.Before(latest) && !g.next.IsZero() {
			latest = g.next
		}
	}
	return latest
}

// Trigger has Run evaluate at once, because something happened that rules may
// be about. It does not block. Triggers that come while an evaluation runs, or
// within a second after one that an event asked for, share the next. Groups
// with an interval longer than the engine's wait for their own tick.
func (e *Engine) Trigger() {
	select {
	case e.trigger <- struct{}{}:
	default: // an evaluation that has not begun yet will see it
	}
}
