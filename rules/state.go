package rules

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Types of rules.
const (
	typeAlerting  = "alerting"
	typeRecording = "recording"
)

func (r *Rule) kind() string {
	if r.Alert != "" {
		return typeAlerting
	}
	return typeRecording
}

// Alerts returns all alerts that are pending, firing or lately resolved,
// sorted by labels.
func (e *Engine) Alerts() []Alert {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Alert
	for _, g := range e.groups {
		for _, r := range g.rules {
			for _, a := range r.active {
				all = append(all, e.public(r, a))
			}
		}
	}
	slices.SortFunc(all, compareAlerts)
	return all
}

// Groups returns the state of every group, in the order of evaluation.
func (e *Engine) Groups() []GroupState { return e.Report().Groups }

// Report returns the state of the engine without explanations.
func (e *Engine) Report() Report { return e.report(nil) }

// Explain returns the state of the engine, with what raised each alert at the
// last evaluation: up to 20 series for each of up to 100 alerts.
func (e *Engine) Explain(ctx context.Context) Report {
	explained := 0
	return e.report(func(r *rule, a *alert) []Cause {
		if explained++; explained > maxExplained {
			return nil
		}
		return e.because(ctx, r, a)
	})
}

// Bounds of an explanation.
const (
	maxExplained = 100
	maxCauses    = 20
)

func (e *Engine) report(because func(*rule, *alert) []Cause) Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	rep := Report{
		Time: e.last, IntervalSeconds: e.o.Interval.Seconds(),
		Memory: Memory{Series: e.ring.count, SeriesLimit: e.o.Limits.Series, Bytes: e.ring.bytes, BytesLimit: e.o.Limits.Bytes},
		Groups: []GroupState{},
	}
	for _, g := range e.groups {
		state := GroupState{
			Name: g.Name, File: g.File, IntervalSeconds: g.interval.Seconds(),
			LastEvaluation: g.last, EvaluationSeconds: g.took.Seconds(), Rules: []RuleState{},
		}
		for _, r := range g.rules {
			rs := r.state()
			for _, a := range r.active {
				as := AlertState{Alert: e.public(r, a)}
				if because != nil && a.state != Inactive {
					as.Because = because(r, a)
				}
				rs.Alerts = append(rs.Alerts, as)
			}
			slices.SortFunc(rs.Alerts, func(a, b AlertState) int { return compareAlerts(a.Alert, b.Alert) })
			state.Rules = append(state.Rules, rs)
		}
		rep.Groups = append(rep.Groups, state)
	}
	return rep
}

func (r *rule) state() RuleState {
	s := RuleState{
		Name: r.Name(), Type: r.kind(), Line: r.Line, Query: r.query,
		ForSeconds: r.For.Seconds(), KeepFiringForSeconds: r.KeepFiringFor.Seconds(),
		Labels: r.Labels, Annotations: r.Annotations,
		Health: r.health, Skipped: r.skip, EvaluationSeconds: r.took.Seconds(), Series: len(r.wrote),
	}
	if r.err != nil {
		s.LastError = r.err.Error()
	}
	if r.Alert == "" {
		return s
	}
	s.Series, s.State = 0, Inactive
	for _, a := range r.active {
		if a.state == Inactive {
			continue
		}
		if s.Series++; a.state == Firing || s.State == Inactive {
			s.State = a.state
		}
	}
	return s
}

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
