package engine

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// fallible reports whether the query engine might fail on an expression that
// yields nothing. The rule has failed then, and what it has raised stays, so
// the engine has to be asked.
func (r *ring) fallible(expr parser.Expr) bool {
	switch x := expr.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return false
	case *parser.VectorSelector:
		// Without their names series may be the same.
		return nameOf(x.LabelMatchers) == "" && r.holds(x.LabelMatchers)
	case *parser.MatrixSelector:
		return r.fallible(x.VectorSelector)
	case *parser.SubqueryExpr:
		return r.fallible(x.Expr)
	case *parser.ParenExpr:
		return r.fallible(x.Expr)
	case *parser.UnaryExpr:
		return r.fallible(x.Expr)
	case *parser.StepInvariantExpr:
		return r.fallible(x.Expr)
	case *parser.AggregateExpr:
		return x.Param != nil || r.fallible(x.Expr)
	case *parser.BinaryExpr:
		return r.fallible(x.LHS) || r.fallible(x.RHS) || x.VectorMatching != nil && !x.Op.IsSetOperator() && !r.nothing(x.LHS) && !r.nothing(x.RHS)
	case *parser.Call:
		known := slices.Contains(strictCalls, x.Func.Name) && !slices.Contains(relabelling, x.Func.Name) || slices.Contains(laxCalls, x.Func.Name)
		return !known && !r.nothing(x) || slices.ContainsFunc(x.Args, r.fallible)
	}
	return true
}

// relabelling functions may give two series the same labels.
var relabelling = []string{"label_join", "label_replace"}

// laxCalls are functions that make something of nothing and cannot fail.
var laxCalls = []string{"absent", "absent_over_time", "scalar", "time", "vector"}
