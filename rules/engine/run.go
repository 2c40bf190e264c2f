package engine

import (
	"context"
	"time"
)

// What bounds the evaluations that events ask for. Each leaves a pause: minGap,
// and longer where evaluating takes long, but not more than maxGap, since a
// machine that is busy is slow to evaluate, and has faults too. A fault is told
// of more than once: by NVML, by the kernel log, by the device that fails. So
// pauses are owed up to credit, and only a storm has to wait for one.
const (
	minGap   = time.Second
	maxGap   = 2 * time.Second
	gapShare = 20 // the pause in lengths of the evaluation
	credit   = 3 * minGap
)

// pace says when events may have the rules evaluated.
type pace struct{ paid time.Time } // when all pauses will be over

// ready is from when on an event is heard.
func (p *pace) ready() time.Time { return p.paid.Add(-credit) }

// spend owes the pause for an evaluation that began at now.
func (p *pace) spend(now time.Time, took time.Duration) {
	p.paid = later(p.paid, now).Add(min(max(minGap, gapShare*took), maxGap))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Run evaluates at once, at each interval and after Trigger, until ctx is done.
func (e *Engine) Run(ctx context.Context) {
	wake := time.NewTimer(0)
	defer wake.Stop()
	page := time.Now() // when the page is to be gathered next
	asked := false
	var events pace
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
			page, events = now, pace{}
		}
		last = now
		switch {
		case asked && !now.Before(events.ready()):
			asked = false
			e.pass(ctx, now, triggered)
			events.spend(now, time.Since(now))
		case !now.Before(page) || !now.Before(e.nextGroup(page)):
			e.pass(ctx, now, due)
		}
		if !page.After(now) {
			page = page.Add(e.o.Interval * (now.Sub(page)/e.o.Interval + 1))
		}
		next := e.nextGroup(page)
		if asked && events.ready().Before(next) {
			next = events.ready()
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

// Ping returns when no evaluation is under way: an engine that hangs does not
// answer it.
func (e *Engine) Ping() {
	e.mu.Lock()
	defer e.mu.Unlock()
}

// Trigger has Run evaluate at once, because something happened that rules may
// be about. It does not block. The first few after a quiet time have one each;
// those that come while an evaluation runs, and those of a storm, share the
// next. Groups with an interval longer than the engine's wait for their own
// tick.
func (e *Engine) Trigger() {
	select {
	case e.trigger <- struct{}{}:
	default: // an evaluation that has not begun yet will see it
	}
}
