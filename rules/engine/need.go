package engine

import (
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// lookback is the largest age of a sample that an instant selector finds: the
// default of Prometheus.
const lookback = 5 * time.Minute

// need is the set of samples that one selector reads.
type need struct {
	matchers []*labels.Matcher
	// reach is how far back; 0 is the latest sample only.
	reach time.Duration
}

// needs are the selectors of the rules of a Set, by metric name; selectors
// without a name are under "".
type needs map[string][]need

func (ns needs) add(matchers []*labels.Matcher, reach time.Duration) {
	name := nameOf(matchers)
	same := func(n need) bool { return slices.EqualFunc(n.matchers, matchers, equalMatchers) }
	if i := slices.IndexFunc(ns[name], same); i >= 0 {
		ns[name][i].reach = max(ns[name][i].reach, reach)
		return
	}
	ns[name] = append(ns[name], need{matchers, reach})
}

func equalMatchers(a, b *labels.Matcher) bool {
	return a.Type == b.Type && a.Name == b.Name && a.Value == b.Value
}

// nameOf returns the metric name that the matchers require, or "".
func nameOf(matchers []*labels.Matcher) string {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// of returns how far back the series is read, and whether it is read at all.
func (ns needs) of(series labels.Labels) (reach time.Duration, read bool) {
	for _, list := range [][]need{ns[series.Get(model.MetricNameLabel)], ns[""]} {
		for _, n := range list {
			if (n.reach > reach || !read) && matches(series, n.matchers) {
				reach, read = max(reach, n.reach), true
			}
		}
	}
	return reach, read
}

// named reports whether any selector may read series of that name.
func (ns needs) named(name string) bool {
	if len(ns[name]) > 0 {
		return true
	}
	return slices.ContainsFunc(ns[""], func(n need) bool {
		return !slices.ContainsFunc(n.matchers, func(m *labels.Matcher) bool {
			return m.Name == model.MetricNameLabel && !m.Matches(name)
		})
	})
}

func matches(series labels.Labels, matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Get(m.Name)) })
}

var errFixedTime = errors.New("a selector reads a fixed time")

// selectors calls f for each selector of an expression, with how far back it
// reads.
func selectors(expr parser.Expr, f func(*parser.VectorSelector, time.Duration)) error {
	var err error
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		reach := max(0, s.OriginalOffset)
		fixed := s.Timestamp != nil
		instant := true
		for _, p := range path {
			switch p := p.(type) {
			case *parser.SubqueryExpr:
				reach += p.Range + max(0, p.OriginalOffset)
				fixed = fixed || p.Timestamp != nil
			case *parser.MatrixSelector:
				reach += p.Range
				instant = false
			}
		}
		if instant && reach > 0 {
			reach += lookback
		}
		if fixed {
			err = errFixedTime
		}
		f(s, reach)
		return nil
	})
	return err
}

var (
	templateNames = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	templateSpans = regexp.MustCompile(`(?:\[|offset\s+)([0-9][0-9a-z]*)`)
)

// templateNeeds adds the series that the queries in a template may read. The
// text of a query exists only when the template runs, so every word that can
// be a metric name counts as one.
func (ns needs) templateNeeds(text string) {
	if !queries.MatchString(text) {
		return
	}
	var reach time.Duration
	for _, m := range templateSpans.FindAllStringSubmatch(text, -1) {
		if d, err := model.ParseDuration(m[1]); err == nil {
			reach += time.Duration(d) + lookback
		}
	}
	for _, name := range templateNames.FindAllString(text, -1) {
		ns.add([]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, name)}, reach)
	}
}

var queries = regexp.MustCompile(`\bquery\b`)

// skipOf returns why a node cannot evaluate a rule, or "".
func skipOf(g *Group, r *Rule, longest time.Duration) Skip {
	if g.Cluster() {
		return SkipCluster
	}
	far := false
	err := selectors(r.Expr, func(_ *parser.VectorSelector, reach time.Duration) { far = far || reach > longest })
	if err != nil || far {
		return SkipRange
	}
	return ""
}
