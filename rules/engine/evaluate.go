package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// mode selects the groups of an evaluation.
type mode int

const (
	due       mode = iota // groups whose interval has passed
	triggered             // and groups whose interval is not longer than the engine's
	every                 // all groups
)

// Eval reads the page once and evaluates the groups that are due at the time
// now, or all of them, as Run does. It is for tests and tools; now must not go
// back.
func (e *Engine) Eval(ctx context.Context, now time.Time, all bool) {
	m := due
	if all {
		m = every
	}
	e.pass(ctx, now, m)
}

// trimEvery is the number of evaluations between two removals of old samples.
const trimEvery = 8

// pass is one evaluation.
func (e *Engine) pass(ctx context.Context, now time.Time, m mode) {
	e.passing.Lock()
	defer e.passing.Unlock()
	page, unread := e.o.Page.Gather()
	e.note("page", unread)

	e.mu.Lock()
	t := now.UnixMilli()
	if !e.last.IsZero() {
		t = max(t, e.last.UnixMilli()+1)
	}
	e.ring.times = append(e.ring.times, t)
	now = time.UnixMilli(t).UTC()
	e.feed.take(e.ring, page, unread == nil || len(page) > 0)
	e.last = now
	e.evaluate(ctx, now, m)
	if e.passes++; e.passes%trimEvery == 0 || e.ring.bytes > e.o.Limits.Bytes {
		e.ring.trim()
	}
	send := e.toSend(now)
	e.limits()
	e.stats.last.WithLabelValues().Set(float64(now.UnixMilli()) / 1000)
	e.mu.Unlock()

	if len(send) > 0 {
		e.o.Notify(send)
	}
}

// evaluate evaluates groups at the latest tick, which is at now.
func (e *Engine) evaluate(ctx context.Context, now time.Time, m mode) {
	if e.applied {
		e.endOrphans()
		e.applied = false
	}
	for _, g := range e.groups {
		if m != every && now.Before(g.next) && !(m == triggered && g.interval <= e.o.Interval) {
			continue
		}
		if !now.Before(g.next) {
			if g.next.IsZero() {
				g.next = now
			}
			// A late group skips the evaluations it missed.
			g.next = g.next.Add((now.Sub(g.next)/g.interval + 1) * g.interval)
		}
		started := time.Now()
		for _, r := range g.rules {
			if ctx.Err() != nil {
				return
			}
			if r.skip == "" {
				e.evaluateRule(ctx, g, r, now)
			}
		}
		g.last, g.took = now, time.Since(started)
	}
}

// endOrphans ends the series of rules that are gone.
func (e *Engine) endOrphans() {
	wrote := map[*series]struct{}{}
	for _, g := range e.groups {
		for _, r := range g.rules {
			maps.Copy(wrote, r.wrote)
		}
	}
	for _, list := range e.ring.byName {
		for _, s := range list {
			if _, kept := wrote[s]; s.recorded && !kept {
				e.ring.end(s)
			}
		}
	}
}

// evaluateRule evaluates one rule. A failure of any kind costs the rule this
// evaluation.
func (e *Engine) evaluateRule(ctx context.Context, g *group, r *rule, now time.Time) {
	started := time.Now()
	vector, err := e.result(ctx, g, r, now)
	if err == nil {
		r.yield = len(vector)
		err = e.write(r, vector)
	}
	r.took, r.err, r.health = time.Since(started), err, HealthOK
	if err != nil {
		r.health = HealthError
		e.stats.failures.WithLabelValues(g.Name).Inc()
	}
	if ctx.Err() == nil {
		e.note(r.where, err)
	}
}

// result returns what a rule yields, within the limit of time. A panic is an
// error.
func (e *Engine) result(ctx context.Context, g *group, r *rule, now time.Time) (vector promql.Vector, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			if !e.logged[r.where] {
				e.o.Log.Error("Rule evaluation panicked", "rule", r.where, "panic", p, "stack", string(debug.Stack()))
			}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, e.o.Limits.Time)
	defer cancel()
	e.before(ctx, r.Name())
	if r.Alert != "" {
		return e.evaluateAlert(ctx, g, r, now)
	}
	return e.evaluateRecord(ctx, g, r, now)
}

var errSameLabels = errors.New("two series of the result have the same labels after the labels of the rule are set")

func (e *Engine) evaluateRecord(ctx context.Context, g *group, r *rule, now time.Time) (promql.Vector, error) {
	vector, err := e.query(ctx, r.query, now)
	if err != nil {
		return nil, err
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	for i := range vector {
		b.Reset(vector[i].Metric)
		b.Set(model.MetricNameLabel, r.Record)
		for _, l := range r.labels {
			b.Set(l.Name, l.Value)
		}
		vector[i].Metric = b.Labels()
	}
	switch {
	case vector.ContainsSameLabelset():
		return nil, errSameLabels
	case g.Limit > 0 && len(vector) > g.Limit:
		return nil, fmt.Errorf("found %d series; the group's limit is %d", len(vector), g.Limit)
	}
	return vector, nil
}

// write puts the result of a rule into the ring and ends the series of the
// previous result that are not in this one.
func (e *Engine) write(r *rule, vector promql.Vector) error {
	if len(vector)+len(r.wrote) == 0 {
		return nil
	}
	wrote := make(map[*series]struct{}, len(vector))
	var err error
	for _, sample := range vector {
		if sample.H != nil {
			err = errors.New("the result has a native histogram; accepted are floats")
			continue
		}
		s := e.ring.get(sample.Metric, true)
		switch {
		case s == nil: // the limit of series; it is counted
		case e.ring.append(s, sample.F):
			wrote[s] = struct{}{}
		default:
			err = fmt.Errorf("%s already has another value, from the page or another rule", sample.Metric)
		}
	}
	for s := range r.wrote {
		if _, still := wrote[s]; !still {
			e.ring.end(s)
		}
	}
	r.wrote = wrote
	return err
}

// note logs when a failure starts and when it ends. The caller has locked
// passing.
func (e *Engine) note(what string, err error) {
	switch was := e.logged[what]; {
	case err != nil && !was:
		e.logged[what] = true
		e.o.Log.Error("Rule evaluation fails", "what", what, "err", err)
	case err == nil && was:
		delete(e.logged, what)
		e.o.Log.Info("Rule evaluation works again", "what", what)
	}
}

// limits logs when the memory limits leave samples out.
func (e *Engine) limits() {
	var err error
	if e.ring.incomplete() {
		err = fmt.Errorf("samples are left out for a memory limit, such as of %s: %d of %d series, %d of %d bytes; no alert resolves", e.ring.lost, e.ring.count(), e.o.Limits.Series, e.ring.bytes, e.o.Limits.Bytes)
	}
	e.note("memory", err)
}
