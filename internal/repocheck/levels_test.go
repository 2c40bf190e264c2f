package repocheck

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/collector"
)

// detailNote is in the description of a panel that is empty at
// --metrics.detail=standard until the device needs attention.
const detailNote = "`--metrics.detail=full`"

// unserved returns the selectors of e that select nothing of a healthy device at
// --metrics.detail=standard.
func unserved(e parser.Expr) []string {
	table := map[string]*collector.Metric{}
	for _, m := range collector.Table() {
		table[m.Name] = m
	}
	var out []string
	for _, s := range selectors(e) {
		if m := table[s.Name]; m != nil && !served(m, s.LabelMatchers) {
			out = append(out, s.String())
		}
	}
	return out
}

// baseless returns the ranges of counters that are not served while they are 0: no
// function of Prometheus sees their first increase.
func baseless(e parser.Expr) []string {
	var out []string
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if r, ok := n.(*parser.MatrixSelector); ok {
			name := r.VectorSelector.(*parser.VectorSelector).Name
			for _, m := range collector.Table() {
				if m.Name == name && m.Kind == collector.Counter && m.Level.HidesZero() {
					out = append(out, r.String())
				}
			}
		}
		return nil
	})
	return out
}

// served reports whether the standard page can have a series that the matchers
// select.
func served(m *collector.Metric, matchers []*labels.Matcher) bool {
	level := m.Level.String()
	label, text, listed := strings.Cut(level, ": ")
	if !listed {
		return level != "none"
	}
	text, without := strings.CutPrefix(text, "not ")
	values := strings.Split(strings.ReplaceAll(text, ", not ", ", "), ", ")
	for _, matcher := range matchers {
		if matcher.Name != label {
			continue
		}
		if !without {
			return slices.ContainsFunc(values, matcher.Matches)
		}
		wanted := matcher.SetMatches()
		if matcher.Type == labels.MatchEqual {
			wanted = []string{matcher.Value}
		}
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(v string) bool { return !slices.Contains(values, v) })
	}
	return true
}

// TestLevels: each level names a label of its family, and rules and
// dashboards read what the standard page has. Only a panel whose description says
// that it needs more is exempt.
func TestLevels(t *testing.T) {
	for _, m := range collector.Table() {
		if label, _, listed := strings.Cut(m.Level.String(), ": "); listed && !slices.Contains(m.Labels, label) {
			t.Errorf("%s: the level selects by %s, which is no label of the family", m.Name, label)
		}
	}
	for _, r := range loadRules(t) {
		e := parsed(t, r.name(), r.Expr)
		for _, s := range unserved(e) {
			t.Errorf("%s reads %s", r.name(), s)
		}
		for _, s := range baseless(e) {
			t.Errorf("%s reads %s, whose first increase is from absence", r.name(), s)
		}
	}
	for _, b := range loadBoards(t) {
		exempt := map[string]bool{}
		for _, p := range b.panels() {
			if strings.Contains(p.Description, detailNote) {
				exempt[b.UID+": "+p.Title] = true
			}
		}
		for at, expr := range b.exprs(t) {
			if exempt[at[:strings.LastIndex(at, ": ")]] {
				continue
			}
			e := parsed(t, at, expr)
			for _, s := range slices.Concat(unserved(e), baseless(e)) {
				t.Errorf("%s reads %s", at, s)
			}
		}
	}
}
