// Package engine evaluates Prometheus rule files on the node: recording and
// alerting rules with the semantics of Prometheus, through its PromQL engine,
// over a bounded memory of recent samples of the exporter's page.
//
// The *.yaml files of package rules are built in. An Engine reads the page at
// its interval, and at once after Trigger, evaluates the groups that are due
// and passes alerts to a function. It calls no device. A rule that fails,
// panics, runs too long or reads too many samples loses that evaluation; the
// other rules are evaluated.
package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Engine evaluates rules. It is safe for concurrent use.
type Engine struct {
	o        Options
	external *url.URL // Options.ExternalURL
	promql   *promql.Engine
	trigger  chan struct{} // capacity 1
	// before is called before each rule is evaluated; tests set it.
	before func(ctx context.Context, rule string)

	// passing is locked during an evaluation, mu while state is used: reading
	// the page collects the engine's own metrics.
	passing sync.Mutex
	mu      sync.Mutex
	ring    *ring
	feed    *feed
	groups  []*group
	applied bool // since the last evaluation
	last    time.Time
	passes  uint64
	logged  map[string]bool // failures that have been logged

	stats *stats
}

// group is a Group with its state.
type group struct {
	*Group
	interval time.Duration
	next     time.Time // when it is due
	last     time.Time
	took     time.Duration
	rules    []*rule
}

// rule is a Rule with its state.
type rule struct {
	*Rule
	// where and templates are places, for messages.
	where, templates string

	query string
	skip  Skip
	// labels and annotations are sorted by name.
	labels, annotations []labels.Label
	// active are alerts by the hash of their labels; resolved alerts stay for
	// resolvedRetention.
	active map[uint64]*alert
	// wrote are the series that the last evaluation wrote.
	wrote map[*series]struct{}

	health Health
	err    error
	took   time.Duration
	yield  int
}

// New returns an Engine that has evaluated nothing yet. The error is of
// Options.ExternalURL.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	external, err := url.Parse(o.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("rules: ExternalURL: %w", err)
	}
	e := &Engine{
		o: o, external: external,
		trigger: make(chan struct{}, 1),
		before:  func(context.Context, string) {},
		stats:   newStats(),
		logged:  map[string]bool{},
	}
	e.ring, e.feed = newRing(o.Limits, e.stats.hits), newFeed(o.Labels)
	e.promql = promql.NewEngine(promql.EngineOpts{
		MaxSamples:               o.Limits.Samples,
		Timeout:                  o.Limits.Time,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return o.Interval.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
	})
	e.Apply(o.Rules)
	return e, nil
}

// Apply replaces the rules. Alerts of rules that keep their file, group, name
// and labels keep their state; alerts of removed rules are not sent any more.
// New rules are first evaluated at the next interval.
func (e *Engine) Apply(s *Set) {
	if s == nil {
		s = &Set{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := map[[2]string]*group{}
	for _, g := range e.groups {
		before[[2]string{g.File, g.Name}] = g
	}
	e.groups = nil
	ns := needs{}
	for _, spec := range s.Groups {
		g := newGroup(spec, e.o.Interval)
		for _, r := range g.rules {
			if r.skip = skipOf(spec, r.Rule, e.o.Limits.Range); r.skip != "" {
				r.health = HealthSkipped
			} else {
				r.addNeeds(ns)
			}
		}
		key := [2]string{spec.File, spec.Name}
		if old := before[key]; old != nil {
			g.copyState(old)
		}
		e.groups = append(e.groups, g)
	}
	e.applied = true
	e.ring.apply(ns)
	e.stats.rules(e.groups)
}

func newGroup(spec *Group, interval time.Duration) *group {
	g := &group{Group: spec, interval: spec.Interval}
	if g.interval == 0 {
		g.interval = interval
	}
	for _, r := range spec.Rules {
		g.rules = append(g.rules, newRule(spec, r))
	}
	return g
}

func newRule(g *Group, spec *Rule) *rule {
	where := fmt.Sprintf("%s:%d: group %q, rule %q", g.File, spec.Line, g.Name, spec.Name())
	return &rule{
		Rule: spec, where: where, templates: where + ": template",
		query: spec.Expr.String(), health: HealthUnknown,
		labels: sortedLabels(spec.Labels), annotations: sortedLabels(spec.Annotations),
		active: map[uint64]*alert{},
	}
}

func sortedLabels(m map[string]string) []labels.Label {
	var all []labels.Label
	for name, v := range m {
		all = append(all, labels.Label{Name: name, Value: v})
	}
	slices.SortFunc(all, func(a, b labels.Label) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// key identifies a rule within its group when the rules are replaced.
func (r *rule) key() string { return fmt.Sprintf("%q %q %q", r.Record, r.Alert, r.labels) }

// copyState takes over the state of the previous group of that name.
func (g *group) copyState(old *group) {
	if g.interval == old.interval {
		g.next = old.next
	}
	g.last, g.took = old.last, old.took
	rest := map[string][]*rule{}
	for _, r := range old.rules {
		rest[r.key()] = append(rest[r.key()], r)
	}
	for _, r := range g.rules {
		if same := rest[r.key()]; len(same) > 0 {
			r.active, r.wrote = same[0].active, same[0].wrote
			rest[r.key()] = same[1:]
		}
	}
}

// Query evaluates an expression over the samples in memory at the time at. It finds
// only series of metrics that some rule reads, and the latest samples that rules
// recorded.
func (e *Engine) Query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.query(ctx, expr, at)
}

// query is Query for a caller that has locked mu.
func (e *Engine) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.ring, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return v, nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, errors.New("the expression yields neither an instant vector nor a scalar")
}
