package engine

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// outlook is what is known of the result of an expression without evaluating
// it. Its zero value means: nothing.
type outlook struct {
	// empty: it has no series.
	empty bool
	// safe: the evaluation fails at most at a limit of time or samples.
	safe bool
	// unique: no two of its series differ in nothing but their name, so a
	// function that drops the name does not fail.
	unique bool
}

// lacks reports whether an expression yields nothing because the ring has none of
// the series that it needs. On a healthy node this holds for most rules. Where
// another part of the expression may fail, it is false: the alerts of a rule that
// fails keep their state, and a mistake in a rule must not stay hidden until its
// metric appears.
func (r *ring) lacks(e parser.Expr) bool {
	o := r.look(e)
	return o.empty && o.safe
}

func (r *ring) look(e parser.Expr) outlook {
	switch e := e.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return outlook{safe: true, unique: true}
	case *parser.VectorSelector:
		name := nameOf(e.LabelMatchers)
		return outlook{empty: name != "" && !r.holds(name, e.LabelMatchers), safe: true, unique: name != ""}
	case *parser.MatrixSelector:
		return r.look(e.VectorSelector)
	case *parser.SubqueryExpr:
		o := r.look(e.Expr)
		o.unique = false // over time
		return o
	case *parser.ParenExpr:
		return r.look(e.Expr)
	case *parser.UnaryExpr:
		return r.look(e.Expr).unnamed()
	case *parser.AggregateExpr:
		o := r.look(e.Expr)
		// A parameter may be invalid, or a number from a series.
		return outlook{empty: o.empty, safe: o.safe && e.Param == nil, unique: e.Without || !slices.Contains(e.Grouping, model.MetricNameLabel)}
	case *parser.Call:
		return r.lookCall(e)
	case *parser.BinaryExpr:
		return lookBinary(e, r.look(e.LHS), r.look(e.RHS))
	}
	return outlook{}
}

// holds reports whether a series of that name matches.
func (r *ring) holds(name string, matchers []*labels.Matcher) bool {
	return slices.ContainsFunc(r.byName[name], func(s *series) bool { return matches(s.labels, matchers) })
}

// unnamed is the outlook without the names of the series.
func (o outlook) unnamed() outlook {
	return outlook{empty: o.empty, safe: o.safe && (o.empty || o.unique), unique: true}
}

func (r *ring) lookCall(c *parser.Call) outlook {
	args := outlook{safe: !c.Func.Experimental, unique: true}
	for _, arg := range c.Args {
		o := r.look(arg)
		args = outlook{empty: args.empty || o.empty, safe: args.safe && o.safe, unique: args.unique && o.unique}
	}
	switch c.Func.Name {
	case "absent", "absent_over_time", "scalar":
		return outlook{safe: args.safe, unique: true}
	case "label_replace", "label_join":
		// Patterns and label names are checked by parseQuery.
		return outlook{empty: args.empty, safe: args.safe && args.empty}
	case "last_over_time":
		return args // it keeps the name
	}
	return args.unnamed()
}

func lookBinary(e *parser.BinaryExpr, l, r outlook) outlook {
	either := outlook{empty: l.empty || r.empty, safe: l.safe && r.safe, unique: l.unique && r.unique}
	m := e.VectorMatching
	switch {
	case m == nil && e.Op.IsComparisonOperator() && !e.ReturnBool: // a vector and a scalar
		return either
	case m == nil:
		return either.unnamed()
	case m.FillValues.LHS != nil || m.FillValues.RHS != nil:
		return outlook{}
	case e.Op == parser.LOR:
		return outlook{empty: l.empty && r.empty, safe: either.safe, unique: either.unique && !m.On}
	case e.Op == parser.LUNLESS:
		return outlook{empty: l.empty, safe: either.safe, unique: l.unique}
	case e.Op == parser.LAND:
		return outlook{empty: either.empty, safe: either.safe, unique: l.unique}
	case m.Card == parser.CardOneToOne && !m.On && len(m.MatchingLabels) == 0:
		return either.unnamed() // unique series match one to one
	}
	return outlook{empty: either.empty, safe: either.safe && either.empty}
}
