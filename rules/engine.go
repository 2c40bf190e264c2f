package rules

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

// Bounds of one query: the samples that it may hold at a time, 16 bytes each,
// and its time.
const (
	maxSamples   = 2_000_000
	queryTimeout = 10 * time.Second
)

// Engine evaluates rules. It is safe for concurrent use and a
// prometheus.Collector of its own metrics.
type Engine struct {
	o       Options
	url     *url.URL
	promql  *promql.Engine
	trigger chan struct{} // capacity 1

	// passing is held through an evaluation, mu while state is used: gathering
	// the page may collect the engine's own metrics.
	passing sync.Mutex
	mu      sync.Mutex
	ring    *ring
	feed    *feed
	groups  []*group
	// orphans are series of rules that are no more; they end with the next
	// evaluation.
	orphans []*series
	last    time.Time
	passes  uint64
	logged  map[string]bool // what failed and has been logged

	stats stats
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
	where string // for messages
	query string
	skip  Skip
	// reads are the names of the series that the expression reads.
	reads []string
	// labels and annotations are sorted by name.
	labels, annotations []labels.Label
	// active are alerts by the hash of their labels; those that have resolved
	// stay for resolvedRetention.
	active map[uint64]*alert
	// wrote are the series that the last evaluation wrote.
	wrote map[*series]struct{}

	health Health
	err    error
	took   time.Duration
	yield  int
}

// New returns an Engine that has evaluated nothing yet. The error says what is
// wrong with the options.
func New(o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if o.Gather == nil {
		return nil, errors.New("rules: Options.Gather is missing")
	}
	e, err := newEngine(o)
	if err != nil {
		return nil, err
	}
	e.Apply(o.Rules)
	return e, nil
}

// newEngine returns an Engine without rules.
func newEngine(o Options) (*Engine, error) {
	external, err := url.Parse(o.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("rules: ExternalURL: %w", err)
	}
	e := &Engine{
		o: o, url: external,
		trigger: make(chan struct{}, 1),
		ring:    newRing(o.Limits), feed: newFeed(o.Labels),
		logged: map[string]bool{},
	}
	e.promql = promql.NewEngine(promql.EngineOpts{
		MaxSamples:               maxSamples,
		Timeout:                  queryTimeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return o.Interval.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
	})
	return e, nil
}

// Apply replaces the rules. Alerts of rules that keep their file, group, name
// and labels go on as they are; those of rules that are gone are sent no more.
// The first evaluation of what is new comes with the next tick.
func (e *Engine) Apply(s *Set) {
	if s == nil {
		s = &Set{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := map[string]*group{}
	for _, g := range e.groups {
		before[g.File+"\xff"+g.Name] = g
	}
	e.groups = nil
	ns := needs{}
	for _, spec := range s.Groups {
		g := newGroup(spec, e.o.Interval)
		for _, r := range g.rules {
			if r.skip = skipOf(spec, r.Rule, e.o.Limits.Range); r.skip != "" && !e.ring.all {
				r.health = HealthSkipped
			} else {
				r.skip = ""
				r.addNeeds(ns)
			}
		}
		key := spec.File + "\xff" + spec.Name
		if old := before[key]; old != nil {
			delete(before, key)
			e.orphans = append(e.orphans, g.copyState(old)...)
		}
		e.groups = append(e.groups, g)
	}
	for _, old := range before {
		for _, r := range old.rules {
			e.orphans = append(e.orphans, r.series()...)
		}
	}
	if !e.ring.all {
		e.ring.apply(ns)
	}
	e.feed.reset()
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
	return &rule{
		Rule: spec, where: fmt.Sprintf("%s:%d: group %q, rule %q", g.File, spec.Line, g.Name, spec.Name()),
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

// series returns what the last evaluation wrote.
func (r *rule) series() []*series {
	var all []*series
	for s := range r.wrote {
		all = append(all, s)
	}
	return all
}

// key is what identifies a rule when others take the place of a group's.
func (r *rule) key() string { return fmt.Sprintf("%q %q %q", r.Record, r.Alert, r.labels) }

// copyState takes over the state of the group that had the name before, and
// returns the series of those of its rules that are no more.
func (g *group) copyState(old *group) (orphans []*series) {
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
	for _, list := range rest {
		for _, r := range list {
			orphans = append(orphans, r.series()...)
		}
	}
	return orphans
}

// query evaluates an expression at a time. The caller holds mu.
func (e *Engine) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.ring, nil, expr, at)
	if err != nil {
		return nil, err
	}
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

// queryRule evaluates the expression of a rule.
func (e *Engine) queryRule(ctx context.Context, r *rule, at time.Time) (promql.Vector, error) {
	if e.ring.nothing(r.Expr) {
		return nil, nil
	}
	return e.query(ctx, r.query, at)
}

// Query evaluates an expression over what the engine holds at the time at. It
// finds only series that some rule selects and the latest of what rules
// recorded.
func (e *Engine) Query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.query(ctx, expr, at)
}

// mode says which groups an evaluation is for.
type mode int

const (
	due       mode = iota // those whose time has come
	triggered             // and those without a longer interval than the engine's
	every                 // all
)

// Eval gathers the page once and evaluates the groups that are due at the time
// now, or all of them, as Run does. It is for tests and tools; now must not go
// back.
func (e *Engine) Eval(ctx context.Context, now time.Time, all bool) {
	m := due
	if all {
		m = every
	}
	e.pass(ctx, now, m)
}

// trimEvery is after how many evaluations old samples go.
const trimEvery = 8

// pass is one evaluation.
func (e *Engine) pass(ctx context.Context, now time.Time, m mode) {
	e.passing.Lock()
	defer e.passing.Unlock()
	begun := time.Now()
	page, done, err := e.o.Gather.Gather()
	up := err == nil || len(page) > 0
	e.note("gather", err)

	e.mu.Lock()
	t := now.UnixMilli()
	if !e.last.IsZero() {
		t = max(t, e.last.UnixMilli()+1)
	}
	e.ring.advance(t)
	now = time.UnixMilli(t).UTC()
	e.feed.take(e.ring, page, up)
	done()
	e.last = now
	e.evaluate(ctx, now, m)
	if e.passes++; e.passes%trimEvery == 0 || e.ring.bytes > e.o.Limits.Bytes {
		e.ring.trim()
	}
	send := e.toSend(now)
	e.limits()
	e.stats.passed(e, now, time.Since(begun), err != nil, m == triggered)
	e.mu.Unlock()

	if len(send) > 0 {
		e.o.Notify(send)
	}
}

// evaluate evaluates groups at the latest tick, which is at now.
func (e *Engine) evaluate(ctx context.Context, now time.Time, m mode) {
	for _, g := range e.groups {
		if m != every && now.Before(g.next) && !(m == triggered && g.interval <= e.o.Interval) {
			continue
		}
		if !now.Before(g.next) {
			if g.next.IsZero() {
				g.next = now
			}
			// Late: skip, do not catch up.
			g.next = g.next.Add((now.Sub(g.next)/g.interval + 1) * g.interval)
		}
		begun := time.Now()
		for _, r := range g.rules {
			if ctx.Err() != nil {
				return
			}
			if r.skip == "" {
				e.evaluateRule(ctx, g, r, now)
			}
		}
		g.last, g.took = now, time.Since(begun)
	}
	for _, s := range e.orphans {
		e.ring.end(s)
	}
	e.orphans = nil
}

func (e *Engine) evaluateRule(ctx context.Context, g *group, r *rule, now time.Time) {
	begun := time.Now()
	var vector promql.Vector
	var err error
	if r.Alert != "" {
		vector, err = e.evaluateAlert(ctx, g, r, now)
	} else {
		vector, err = e.evaluateRecord(ctx, g, r, now)
	}
	if err == nil {
		r.yield = len(vector)
		err = e.write(r, vector)
	}
	r.took, r.err, r.health = time.Since(begun), err, HealthOK
	if err != nil {
		r.health = HealthError
	}
	e.stats.evaluated(g.Name, err != nil)
	if !errors.As(err, new(promql.ErrQueryCanceled)) {
		e.note(r.where, err)
	}
}

var errSameLabels = errors.New("two series of the result have the same labels once those of the rule are set")

func (e *Engine) evaluateRecord(ctx context.Context, g *group, r *rule, now time.Time) (promql.Vector, error) {
	vector, err := e.queryRule(ctx, r, now)
	if err != nil {
		return nil, err
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	for i := range vector {
		b.Reset(vector[i].Metric)
		b.Set(labels.MetricName, r.Record)
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

// write puts the result of a rule into the ring and ends the series that it
// had before and has no more.
func (e *Engine) write(r *rule, vector promql.Vector) error {
	wrote := make(map[*series]struct{}, len(vector))
	var err error
	for _, sample := range vector {
		if sample.H != nil {
			err = errors.New("the result has a native histogram, which the engine does not hold")
			continue
		}
		s := e.ring.get(sample.Metric, true)
		switch {
		case s == nil: // the limit of series; it is counted
		case e.ring.append(s, sample.F):
			wrote[s] = struct{}{}
		default:
			err = fmt.Errorf("%s has another value from the page or another rule", sample.Metric)
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

// note logs when a failure begins and when it ends. The caller holds passing.
func (e *Engine) note(what string, err error) {
	switch was := e.logged[what]; {
	case err != nil && !was:
		e.logged[what] = true
		e.o.Log.Error("rule evaluation fails", "what", what, "err", err)
	case err == nil && was:
		delete(e.logged, what)
		e.o.Log.Info("rule evaluation works again", "what", what)
	}
}

// limits logs when the memory does not suffice.
func (e *Engine) limits() {
	var err error
	if len(e.ring.lost) > 0 {
		err = fmt.Errorf("the memory for samples does not suffice: %d of %d series, %d of %d bytes; alerts on %s stay as they are", e.ring.count, e.o.Limits.Series, e.ring.bytes, e.o.Limits.Bytes, someNames(e.ring.lost))
	}
	e.note("memory", err)
}

// someNames names up to three keys.
func someNames(m map[string]int64) string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3], "others")
	}
	return strings.Join(names, ", ")
}
