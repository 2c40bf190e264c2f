package repocheck

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// shape is the labels that the series of an expression can have, each with its values if
// the expression sets them, else nil.
type shape map[string][]string

// has reports whether the series can have the label. A scrape can set any of
// targetLabels.
func (s shape) has(label string) bool {
	_, ok := s[label]
	return ok || slices.Contains(targetLabels, label)
}

// keep returns the labels that are in names.
func (s shape) keep(names ...string) shape {
	kept := shape{}
	for _, name := range names {
		if s.has(name) {
			kept[name] = s[name]
		}
	}
	return kept
}

// drop returns the labels that are not in names.
func (s shape) drop(names ...string) shape {
	rest := maps.Clone(s)
	maps.DeleteFunc(rest, func(name string, _ []string) bool { return slices.Contains(names, name) })
	return rest
}

// or returns the labels of either.
func (s shape) or(other shape) shape {
	both := maps.Clone(s)
	for name, values := range other {
		switch former, ok := s[name]; {
		case !ok:
			both[name] = values
		case former == nil || values == nil:
			both[name] = nil
		default:
			both[name] = slices.Concat(former, values)
		}
	}
	return both
}

// shapeOf returns the labels of the series of e.
func shapeOf(all map[string]family, e parser.Expr) shape {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return shapeOf(all, e.Expr)
	case *parser.UnaryExpr:
		return shapeOf(all, e.Expr)
	case *parser.SubqueryExpr:
		return shapeOf(all, e.Expr)
	case *parser.MatrixSelector:
		return shapeOf(all, e.VectorSelector)
	case *parser.VectorSelector:
		s := shape{}
		for _, l := range slices.Concat(all[e.Name].labels, targetLabels) {
			s[l] = nil
		}
		return s
	case *parser.AggregateExpr:
		return aggregated(all, e)
	case *parser.Call:
		return called(all, e)
	case *parser.BinaryExpr:
		return joined(all, e)
	}
	return shape{}
}

func aggregated(all map[string]family, e *parser.AggregateExpr) shape {
	s := shapeOf(all, e.Expr)
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return s
	}
	if e.Without {
		s = s.drop(e.Grouping...)
	} else {
		s = s.keep(e.Grouping...)
	}
	if e.Op == parser.COUNT_VALUES {
		s[text(e.Param)] = nil
	}
	return s
}

func called(all map[string]family, c *parser.Call) shape {
	s := shape{}
	for _, arg := range c.Args {
		if arg.Type() == parser.ValueTypeVector || arg.Type() == parser.ValueTypeMatrix {
			s = shapeOf(all, arg)
			break
		}
	}
	switch c.Func.Name {
	case "label_replace":
		if value := text(c.Args[2]); !strings.Contains(value, "$") {
			s[text(c.Args[1])] = []string{value}
			break
		}
		fallthrough
	case "label_join":
		s[text(c.Args[1])] = nil
	case "histogram_quantile":
		delete(s, "le")
	case "absent", "absent_over_time", "vector", "scalar":
		return shape{}
	}
	return s
}

func joined(all map[string]family, e *parser.BinaryExpr) shape {
	l, r := shapeOf(all, e.LHS), shapeOf(all, e.RHS)
	m := e.VectorMatching
	switch {
	case m == nil:
		return l.or(r) // one of them is a scalar
	case e.Op == parser.LOR:
		return l.or(r)
	case e.Op.IsSetOperator():
		return l
	case m.Card == parser.CardManyToOne:
		return l.or(r.keep(m.Include...))
	case m.Card == parser.CardOneToMany:
		return r.or(l.keep(m.Include...))
	case m.On:
		return l.keep(m.MatchingLabels...)
	}
	return l.drop(m.MatchingLabels...)
}

// text returns the content of a string literal.
func text(e parser.Expr) string {
	if s, ok := e.(*parser.StringLiteral); ok {
		return s.Val
	}
	return ""
}

// exprFaults returns the mistakes of an expression: series, labels and values of labels
// that do not exist, and groupings and joins by a label that the series lack, which make
// one series of all or match nothing.
func exprFaults(all map[string]family, e parser.Expr) []string {
	var out []string
	bad := func(where string, e parser.Node, label string) {
		out = append(out, where+" a label that is missing, "+label+": "+e.String())
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			out = append(out, selectorFaults(all, n)...)
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				if !n.Without && !shapeOf(all, n.Expr).has(label) {
					bad("groups by", n, label)
				}
			}
		case *parser.BinaryExpr:
			m := n.VectorMatching
			if m == nil || !m.On {
				break
			}
			l, r := shapeOf(all, n.LHS), shapeOf(all, n.RHS)
			for _, label := range m.MatchingLabels {
				if !l.has(label) || !r.has(label) {
					bad("joins on", n, label)
				}
			}
			for _, label := range m.Include {
				if m.Card == parser.CardManyToOne && !r.has(label) || m.Card == parser.CardOneToMany && !l.has(label) {
					bad("includes", n, label)
				}
			}
		}
		return nil
	})
	return out
}

// selectors returns the selectors of an expression.
func selectors(e parser.Expr) []*parser.VectorSelector {
	var all []*parser.VectorSelector
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			all = append(all, s)
		}
		return nil
	})
	return all
}
