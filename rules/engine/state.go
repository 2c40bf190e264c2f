package engine

import (
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

// Report returns the state of the engine.
func (e *Engine) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	rep := Report{
		Time: e.last, IntervalSeconds: e.o.Interval.Seconds(),
		Memory: Memory{Series: e.ring.count(), SeriesLimit: e.o.Limits.Series, Bytes: e.ring.bytes, BytesLimit: e.o.Limits.Bytes},
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
				rs.Alerts = append(rs.Alerts, a.Alert)
			}
			slices.SortFunc(rs.Alerts, compareAlerts)
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
		if a.State == Inactive {
			continue
		}
		if s.Series++; a.State == Firing || s.State == Inactive {
			s.State = a.State
		}
	}
	return s
}

// Health is the outcome of the last evaluation of a rule.
type Health string

// A rule is HealthUnknown before its first evaluation and HealthSkipped if the
// node cannot evaluate it.
const (
	HealthUnknown Health = "unknown"
	HealthOK      Health = "ok"
	HealthError   Health = "error"
	HealthSkipped Health = "skipped"
)

// Skip is why the node does not evaluate a rule.
type Skip string

// SkipCluster is a rule of a group whose name starts with ClusterPrefix;
// SkipRange a rule that reads further back than Limits.Range, or a fixed time.
const (
	SkipCluster Skip = "cluster"
	SkipRange   Skip = "range"
)

// Report is the state of an Engine: the content of /debug/rules.
type Report struct {
	// Time is the time of the last evaluation, zero before the first.
	Time            time.Time    `json:"time,omitzero"`
	IntervalSeconds float64      `json:"interval_seconds"`
	Memory          Memory       `json:"memory"`
	Groups          []GroupState `json:"groups"`
}

// Memory is the memory of an Engine and its limits.
type Memory struct {
	Series      int `json:"series"`
	SeriesLimit int `json:"series_limit"`
	// Bytes is the size of the samples, without labels.
	Bytes      int `json:"bytes"`
	BytesLimit int `json:"bytes_limit"`
	// OldestSample is the time of the oldest sample.
	OldestSample time.Time `json:"oldest_sample,omitzero"`
}

// GroupState is the state of a group.
type GroupState struct {
	Name            string  `json:"name"`
	File            string  `json:"file"`
	IntervalSeconds float64 `json:"interval_seconds"`
	// LastEvaluation is zero before the first.
	LastEvaluation    time.Time   `json:"last_evaluation,omitzero"`
	EvaluationSeconds float64     `json:"evaluation_seconds"`
	Rules             []RuleState `json:"rules"`
}

// RuleState is the state of a rule.
type RuleState struct {
	Name string `json:"name"`
	// Type is alerting or recording.
	Type                 string            `json:"type"`
	Line                 int               `json:"line"`
	Query                string            `json:"query"`
	ForSeconds           float64           `json:"for_seconds,omitempty"`
	KeepFiringForSeconds float64           `json:"keep_firing_for_seconds,omitempty"`
	Labels               map[string]string `json:"labels,omitempty"`
	Annotations          map[string]string `json:"annotations,omitempty"`
	Health               Health            `json:"health"`
	LastError            string            `json:"last_error,omitempty"`
	Skipped              Skip              `json:"skipped,omitempty"`
	EvaluationSeconds    float64           `json:"evaluation_seconds"`
	// Series is the number of series or alerts of the last evaluation.
	Series int `json:"series"`
	// State is Firing if any alert fires, else Pending or Inactive; empty for
	// a recording rule.
	State  State   `json:"state,omitempty"`
	Alerts []Alert `json:"alerts,omitempty"`
}
