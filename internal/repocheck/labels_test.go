package repocheck

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
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

func TestExprFaultsAreFound(t *testing.T) {
	all := families(t)
	for expr, want := range map[string]string{
		`accel_power_wats`:                                                                                 "no series is named accel_power_wats",
		`accel_power_watts{devise="x"}`:                                                                    "has no label devise",
		`accel_device_health{state="ill"}`:                                                                 "state is never ill",
		`accel_device_health_reason{reason=~"xid_79|zzz"}`:                                                 "reason is never zzz",
		`accel_device_health_reason{reason=~"(nvlink|zzz)_(.*)|xid_(79|48)"}`:                              "reason is never zzz_.*",
		`sum by (link) (accel_power_watts)`:                                                                "groups by a label that is missing, link",
		`max by (node) (accel_power_watts) and on (device) accel_device_info`:                              "joins on a label that is missing, device",
		`accel_power_watts * on (device) group_left (model) max by (device) (accel_device_info)`:           "includes a label that is missing, model",
		`accel_power_watts * on (device) group_left (model) max by (device, model) (accel_device_info)`:    "",
		`sum by (reason) (label_replace(accel_power_watts, "reason", "hot", "", ""))`:                      "",
		`count by (value) (count_values without (device) ("value", accel_power_watts))`:                    "",
		`sum by (index) (accel_power_watts * on (device) group_left (index) accel_device_info{parent=""})`: "",
	} {
		got := strings.Join(exprFaults(all, parsed(t, "test", expr)), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

func TestShapes(t *testing.T) {
	all := families(t)
	for expr, want := range map[string]string{
		`max by (cluster, device) (accel_power_watts)`:                                                "cluster device",
		`max by (node, device) (accel_power_watts) > on (node) group_left () vector(1)`:               "device node",
		`max by (node, device) (accel_power_watts) > on (node) max by (node) (accel_power_watts)`:     "node",
		`sum by (node) (accel_power_watts) or sum by (pool) (accel_power_watts)`:                      "node pool",
		`sum by (node) (accel_power_watts) unless on (node) sum by (node, pool) (up)`:                 "node",
		`2 * label_replace(sum by (node) (up), "reason", "gone", "", "")`:                             "node reason=gone",
		`topk(3, sum by (node) (up))`:                                                                 "node",
		`vector(1)`:                                                                                   "",
		`sum by (node) (up) * ignoring (node) group_right () sum by (node, device) (accel_device_up)`: "device node",
	} {
		var got []string
		s := shapeOf(all, parsed(t, "test", expr))
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if values := s[name]; values != nil {
				name += "=" + strings.Join(values, "|")
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
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

// chosen reports whether the selector names single values of the label.
func chosen(s *parser.VectorSelector, label string) bool {
	return slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == label && m.Value != "" && (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0)
	})
}
