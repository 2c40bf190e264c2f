package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// because returns what the selectors of a rule yield for one alert: the series
// whose labels do not contradict those of the alert. For a range it is the
// result of the function around it. A recorded series is replaced by the
// series that its rule reads.
func (e *Engine) because(ctx context.Context, r *rule, a *alert) []Cause {
	if e.last.IsZero() {
		return nil
	}
	own := a.labels.Map()
	delete(own, labels.AlertName)
	for name := range r.Labels {
		delete(own, name)
	}
	x := explanation{e: e, own: own, causes: []Cause{}, asked: map[string]bool{}}
	x.explain(ctx, r.Expr)
	return x.causes
}

// explanation collects the causes of one alert.
type explanation struct {
	e      *Engine
	own    map[string]string // labels
	causes []Cause
	asked  map[string]bool
}

// explain visits an expression, each part of it once.
func (x *explanation) explain(ctx context.Context, expr parser.Expr) {
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		part, ok := leaf(n, path)
		if !ok || x.asked[part] || len(x.causes) >= maxCauses {
			return nil
		}
		x.asked[part] = true
		if s, ok := n.(*parser.VectorSelector); ok && s.OriginalOffset == 0 {
			if r := x.e.recording(s.Name); r != nil {
				x.explain(ctx, r.Expr)
				return nil
			}
		}
		x.ask(ctx, part)
		return nil
	})
}

func (x *explanation) ask(ctx context.Context, part string) {
	vector, err := x.e.query(ctx, part, x.e.last)
	if err != nil {
		return // the state of the rule shows its error
	}
	for _, s := range vector {
		if len(x.causes) < maxCauses && fits(s.Metric, x.own) {
			x.causes = append(x.causes, Cause{Expr: part, Labels: s.Metric.Map(), Value: Number(s.F)})
		}
	}
}

// recording returns the rule that records series of that name, or nil.
func (e *Engine) recording(name string) *rule {
	for _, g := range e.groups {
		for _, r := range g.rules {
			if r.Record == name {
				return r
			}
		}
	}
	return nil
}

// leaf returns the text of a selector, or of the innermost call around a range
// selector.
func leaf(n parser.Node, path []parser.Node) (string, bool) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		for _, p := range path {
			switch p.(type) {
			case *parser.MatrixSelector, *parser.SubqueryExpr:
				return "", false // its call is the leaf
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

// fits reports whether no label of the series contradicts the labels of an alert.
func fits(series labels.Labels, own map[string]string) bool {
	ok := true
	series.Range(func(l labels.Label) {
		if v, has := own[l.Name]; has && v != l.Value {
			ok = false
		}
	})
	return ok
}
