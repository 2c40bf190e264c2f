package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// group is a rule group. Interval is never 0.
type group struct {
	name     string
	interval time.Duration
	rules    []rule
}

type rule struct {
	record, alert string
	expr          parser.Expr
}

func (r rule) name() string { return cmp.Or(r.record, r.alert) }

// loadGroups returns the groups of the rule files, each after the groups that
// record the series it reads.
func loadGroups(paths []string, interval time.Duration) ([]group, error) {
	var all []group
	for _, path := range paths {
		var f struct {
			Groups []struct {
				Name     string
				Interval string
				Rules    []struct{ Record, Alert, Expr string }
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(data, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, g := range f.Groups {
			made := group{name: g.Name, interval: interval}
			if g.Interval != "" {
				if made.interval, err = time.ParseDuration(g.Interval); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", path, g.Name, err)
				}
			}
			for _, r := range g.Rules {
				expr, err := parser.ParseExpr(r.Expr)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", path, cmp.Or(r.Record, r.Alert), err)
				}
				made.rules = append(made.rules, rule{record: r.Record, alert: r.Alert, expr: expr})
			}
			all = append(all, made)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no rule groups in %q", paths)
	}
	return ordered(all), nil
}

func ordered(groups []group) []group {
	recordedBy := map[string]int{}
	for i, g := range groups {
		for _, r := range g.rules {
			recordedBy[r.record] = i
		}
	}
	var out []group
	done := map[int]bool{}
	var add func(int)
	add = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for name := range windows(groups[i:i+1], 0) {
			if before, ok := recordedBy[name]; ok {
				add(before)
			}
		}
		out = append(out, groups[i])
	}
	for i := range groups {
		add(i)
	}
	return out
}

// windows returns the families that the rules read, each with the longest
// stretch of its past that one of them needs. Of a scraped family, a moment before the
// history is not filled: what a rule costs there is the cost of a moment within it.
func windows(groups []group, history time.Duration) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, g := range groups {
		for _, r := range g.rules {
			parser.Inspect(r.expr, func(n parser.Node, path []parser.Node) error {
				v, ok := n.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				moment := max(lookback, chunk)
				past := moment + v.OriginalOffset
				over := time.Duration(0)
				for _, p := range path {
					switch p := p.(type) {
					case *parser.MatrixSelector:
						over += p.Range
					case *parser.SubqueryExpr:
						over += p.Range + p.OriginalOffset
					}
				}
				if over == 0 && past > history && !strings.Contains(v.Name, ":") {
					past = moment
				}
				all[v.Name] = max(all[v.Name], past+over)
				return nil
			})
		}
	}
	return all
}
