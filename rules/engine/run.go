package engine

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Limits of evaluations that events trigger: one in each gap, and burst at once, because
// NVML, the kernel log and the failing device each report one fault. Only a storm waits.
const (
	gap   = time.Second
	burst = 4
)

// Run evaluates at once, at each interval and after Trigger, until ctx is done.
func (e *Engine) Run(ctx context.Context) {
	wake := time.NewTimer(0)
	defer wake.Stop()
	page := e.o.Now() // when the page is read next
	events := rate.NewLimiter(rate.Every(gap), burst)
	var event time.Time // when an event is evaluated; zero if none waits
	last := page
	for {
		trigger := e.trigger
		if !event.IsZero() {
			trigger = nil
		}
		came := false
		select {
		case <-ctx.Done():
			return
		case <-trigger:
			came = true
		case <-wake.C:
		}
		now := e.o.Now()
		if set := collector.ClockSet(last, now); set.Abs() > e.o.Interval {
			e.restart(set)
			// These are wall times, like the times of nextGroup.
			page, event, events = now, time.Time{}, rate.NewLimiter(rate.Every(gap), burst)
		}
		last = now
		if came {
			event = now.Add(events.ReserveN(now, 1).DelayFrom(now))
		}
		switch {
		case !event.IsZero() && !now.Before(event):
			event = time.Time{}
			e.pass(ctx, now, triggered)
		case !now.Before(page) || !now.Before(e.nextGroup(page)):
			e.pass(ctx, now, due)
		}
		if !page.After(now) {
			page = page.Add(e.o.Interval * (now.Sub(page)/e.o.Interval + 1))
		}
		next := e.nextGroup(page)
		if !event.IsZero() && event.Before(next) {
			next = event
		}
		wake.Reset(next.Sub(e.o.Now()))
	}
}

// nextGroup returns when the first group is due, but not after latest.
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

// Trigger makes Run evaluate at once, after an event. It does not block. The
// first few events after a quiet time have an evaluation each; events during an
// evaluation, and the events of a storm, share the next. Groups with an
// interval longer than the engine's wait for their own tick.
func (e *Engine) Trigger() {
	select {
	case e.trigger <- struct{}{}:
	default: // the next evaluation covers it
	}
}

// restart forgets all samples and alerts, after the clock was set by by: their times
// mean nothing any more. Alertmanager keeps the alerts that fire again.
func (e *Engine) restart(by time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	read := e.ring.needs
	e.ring, e.feed = newRing(e.o.Limits, e.stats.hits), newFeed(e.o.Labels)
	e.ring.needs, e.last = read, time.Time{}
	for _, g := range e.groups {
		g.next = time.Time{}
		for _, r := range g.rules {
			r.wrote = nil
			clear(r.active)
		}
	}
	e.o.Log.Info("Clock was set, rules begin again", "by", by)
}
