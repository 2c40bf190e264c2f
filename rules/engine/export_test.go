package engine

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Shift simulates that the clock was set by by.
func (e *Engine) Shift(by time.Duration) { e.shift(by) }

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
				all = append(all, e.public(r, a))
			}
		}
	}
	slices.SortFunc(all, compareAlerts)
	return all
}

// Groups returns the state of every group, in the order of evaluation.
func (e *Engine) Groups() []GroupState { return e.Report().Groups }

// Lacks reports whether an expression is not evaluated, because the series that it
// needs are not in memory.
func (e *Engine) Lacks(expr string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, err := parseQuery(expr)
	return err == nil && e.ring.lacks(x), err
}

// Compute evaluates an expression even if series that it needs are not in memory.
func (e *Engine) Compute(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, err := parseQuery(expr)
	if err != nil {
		return nil, err
	}
	return e.compute(ctx, x, at)
}
