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

// needs is how far back rules read the series of a metric, by its name. A selector
// without a name, which is under "", may read any series.
type needs map[string]time.Duration

func (ns needs) add(name string, reach time.Duration) { ns[name] = max(ns[name], reach) }

// of returns how far back samples of series of that name are kept, at least the lookback
// of an instant selector, and whether the series are read at all.
func (ns needs) of(name string) (reach time.Duration, read bool) {
	reach, read = ns[name]
	anyReach, anyRead := ns[""]
	return max(reach, anyReach, lookback), read || anyRead
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
		ns.add(name, reach)
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
