package rules

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// because finds what the selectors of a rule yield for one alert: the series
// that contradict none of its labels. Around a range it is the function's
// result.
func (e *Engine) because(ctx context.Context, r *rule, a *alert) []Cause {
	if e.last.IsZero() {
		return nil
	}
	own := a.labels.Map()
	delete(own, labels.AlertName)
	for name := range r.Labels {
		delete(own, name)
	}
	causes := []Cause{}
	asked := map[string]bool{}
	parser.Inspect(r.Expr, func(n parser.Node, path []parser.Node) error {
		part, ok := leaf(n, path)
		if !ok || asked[part] || len(causes) >= maxCauses {
			return nil
		}
		asked[part] = true
		vector, err := e.query(ctx, part, e.last)
		if err != nil {
			return nil // the rule's own error says why
		}
		for _, s := range vector {
			if len(causes) < maxCauses && fits(s.Metric, own) {
				causes = append(causes, Cause{Expr: part, Labels: s.Metric.Map(), Value: Number(s.F)})
			}
		}
		return nil
	})
	return causes
}

// leaf returns what shows a selector's part in an expression: the selector, or
// the innermost call around it where it is a range.
func leaf(n parser.Node, path []parser.Node) (string, bool) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		for _, p := range path {
			switch p.(type) {
			case *parser.MatrixSelector, *parser.SubqueryExpr:
				return "", false // its call shows it
			}
		}
		return n.String(), true
	case *parser.Call:
		for _, arg := range n.Args {
			if t := arg.Type(); t == parser.ValueTypeMatrix {
				return n.String(), true
			}
		}
	}
	return "", false
}

// fits reports whether no label of the series contradicts those of an alert.
func fits(series labels.Labels, own map[string]string) bool {
	ok := true
	series.Range(func(l labels.Label) {
		if v, has := own[l.Name]; has && v != l.Value {
			ok = false
		}
	})
	return ok
}
