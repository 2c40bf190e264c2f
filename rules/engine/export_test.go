package engine

import (
	"context"
	"slices"
	"time"
)

// ClockSet simulates that the clock was set by by.
func (e *Engine) ClockSet(by time.Duration) { e.restart(by) }

// Before calls f before each rule is evaluated, with the context of that evaluation.
func (e *Engine) Before(f func(ctx context.Context, rule string)) { e.before = f }

// Alerts returns all alerts that are pending, firing or recently resolved,
// sorted by labels.
func (e *Engine) Alerts() []Alert {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Alert
	for _, g := range e.groups {
		for _, r := range g.rules {
			for _, a := range r.active {
				all = append(all, a.Alert)
			}
		}
	}
	slices.SortFunc(all, compareAlerts)
	return all
}

// Groups returns the state of every group, in the order of evaluation.
func (e *Engine) Groups() []GroupState { return e.Report().Groups }
