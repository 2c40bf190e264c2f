package engine

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// nothing reports whether an expression is sure to yield nothing, because no
// series is held that it would need. On a healthy node that is most of them,
// and asking costs less than parsing the expression anew, which the query
// engine does each time.
func (r *ring) nothing(expr parser.Expr) bool {
	switch x := expr.(type) {
	case *parser.VectorSelector:
		return !r.holds(x.LabelMatchers)
	case *parser.MatrixSelector:
		return r.nothing(x.VectorSelector)
	case *parser.SubqueryExpr:
		return r.nothing(x.Expr)
	case *parser.ParenExpr:
		return r.nothing(x.Expr)
	case *parser.UnaryExpr:
		return r.nothing(x.Expr)
	case *parser.StepInvariantExpr:
		return r.nothing(x.Expr)
	case *parser.AggregateExpr:
		return r.nothing(x.Expr)
	case *parser.BinaryExpr:
		return r.nothingOf(x)
	case *parser.Call:
		// Some functions make something of nothing: absent, vector, scalar,
		// time and its kin.
		return slices.Contains(strictCalls, x.Func.Name) && slices.ContainsFunc(x.Args, func(arg parser.Expr) bool { return r.nothing(arg) })
	}
	return false
}

// strictCalls are functions that yield nothing where their vector is empty.
var strictCalls = []string{
	"abs", "avg_over_time", "ceil", "changes", "clamp", "clamp_max", "clamp_min", "count_over_time", "delta", "deriv", "floor",
	"histogram_quantile", "idelta", "increase", "irate", "label_join", "label_replace", "last_over_time", "max_over_time",
	"min_over_time", "predict_linear", "present_over_time", "quantile_over_time", "rate", "resets", "round", "sort", "sort_desc",
	"stddev_over_time", "stdvar_over_time", "sum_over_time", "timestamp",
}

func (r *ring) nothingOf(x *parser.BinaryExpr) bool {
	vectors := x.LHS.Type() == parser.ValueTypeVector && x.RHS.Type() == parser.ValueTypeVector
	switch {
	case x.Op == parser.LOR:
		return r.nothing(x.LHS) && r.nothing(x.RHS)
	case x.Op == parser.LUNLESS:
		return r.nothing(x.LHS)
	case vectors && (x.VectorMatching == nil || x.VectorMatching.FillValues != parser.VectorMatchFillValues{}):
		return false
	case vectors:
		return r.nothing(x.LHS) || r.nothing(x.RHS)
	case x.LHS.Type() == parser.ValueTypeVector:
		return r.nothing(x.LHS)
	case x.RHS.Type() == parser.ValueTypeVector:
		return r.nothing(x.RHS)
	}
	return false
}

// holds reports whether any series matches that has samples.
func (r *ring) holds(matchers []*labels.Matcher) bool {
	fits := func(s *series) bool { return len(s.runs) > 0 && matches(s.labels, matchers) }
	if name := nameOf(matchers); name != "" {
		return slices.ContainsFunc(r.byName[name], fits)
	}
	for _, list := range r.byName {
		if slices.ContainsFunc(list, fits) {
			return true
		}
	}
	return false
}
