package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// resumeWithin is how old a Standing may be: what was pending before that has
// to begin anew.
const resumeWithin = time.Hour

// Standing is how far the alerts of an Engine are, for one in another process
// that takes its place.
type Standing struct {
	// Time is that of the evaluation.
	Time   time.Time       `json:"time"`
	Alerts []StandingAlert `json:"alerts"`
}

// StandingAlert is an alert and the rule that it is of.
type StandingAlert struct {
	File  string `json:"file"`
	Group string `json:"group"`
	// Rule identifies the rule within its group.
	Rule string `json:"rule"`
	Alert
}

// Standing returns how far the alerts are.
func (e *Engine) Standing() Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Standing{Time: e.last}
	for _, g := range e.groups {
		for _, r := range g.rules {
			for _, a := range r.active {
				s.Alerts = append(s.Alerts, StandingAlert{g.File, g.Name, r.key(), e.public(r, a)})
			}
		}
	}
	slices.SortFunc(s.Alerts, func(a, b StandingAlert) int {
		if c := strings.Compare(a.File+a.Group+a.Rule, b.File+b.Group+b.Rule); c != 0 {
			return c
		}
		return compareAlerts(a.Alert, b.Alert)
	})
	return s
}

// Resume takes over alerts of rules that the Engine has, before its first
// evaluation. An alert that its expression does not yield ends only once the
// memory is as long as the expression reaches: before, that may be for want of
// it.
func (e *Engine) Resume(s Standing, now time.Time) {
	if now.Sub(s.Time) > resumeWithin {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	recorded := map[string]time.Duration{}
	for _, g := range e.groups {
		for _, r := range g.rules {
			reach := reachOf(r.Expr, recorded)
			if r.Record != "" {
				recorded[r.Record] = max(recorded[r.Record], reach)
				continue
			}
			for i := range s.Alerts {
				if a := &s.Alerts[i]; a.File == g.File && a.Group == g.Name && a.Rule == r.key() {
					r.take(a, now.Add(reach))
				}
			}
		}
	}
}

// take makes a an alert of r, which is held until then at least.
func (r *rule) take(s *StandingAlert, until time.Time) {
	if s.State != Pending && s.State != Firing && s.State != Inactive {
		return
	}
	a := &alert{
		labels: labels.FromMap(s.Labels), annotations: s.Annotations, state: s.State, value: float64(s.Value),
		activeAt: s.ActiveAt, firedAt: s.FiredAt, resolvedAt: s.ResolvedAt, keepFiringSince: s.KeepFiringSince,
		lastSentAt: s.LastSentAt, validUntil: s.ValidUntil,
	}
	r.active[a.labels.Hash()], r.hold = a, until
}

// reachOf returns how far back an expression reads, by way of what was
// recorded too.
func reachOf(expr parser.Expr, recorded map[string]time.Duration) time.Duration {
	var longest time.Duration
	// One that looks at a fixed time is skipped and has no alerts.
	_ = selectors(expr, func(s *parser.VectorSelector, reach time.Duration) {
		longest = max(longest, reach+recorded[nameOf(s.LabelMatchers)])
	})
	return longest
}
