package engine

import (
	"context"
	"slices"
	"time"
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
	if len(e.ring.times) > 0 {
		rep.Memory.OldestSample = time.UnixMilli(e.ring.times[0]).UTC()
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
