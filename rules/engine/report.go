package engine

import "time"

// Health says how the last evaluation of a rule went.
type Health string

// A rule is HealthUnknown before its first evaluation and HealthSkipped where
// the node cannot evaluate it.
const (
	HealthUnknown Health = "unknown"
	HealthOK      Health = "ok"
	HealthError   Health = "error"
	HealthSkipped Health = "skipped"
)

// Skip says why the node does not evaluate a rule.
type Skip string

// SkipCluster is a rule of a group whose name begins with ClusterPrefix;
// SkipRange one that looks back further than Limits.Range, or at a fixed time.
const (
	SkipCluster Skip = "cluster"
	SkipRange   Skip = "range"
)

// Report is the state of an Engine: what /debug/rules answers.
type Report struct {
	// Time is that of the last evaluation, zero before the first.
	Time            time.Time    `json:"time,omitzero"`
	IntervalSeconds float64      `json:"interval_seconds"`
	Memory          Memory       `json:"memory"`
	Groups          []GroupState `json:"groups"`
}

// Memory is what an Engine holds and may hold.
type Memory struct {
	Series      int `json:"series"`
	SeriesLimit int `json:"series_limit"`
	// Bytes is what the samples take, without the labels.
	Bytes      int `json:"bytes"`
	BytesLimit int `json:"bytes_limit"`
	// OldestSample is how far back anything is held.
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
	// Series is how many series or alerts the last evaluation yielded.
	Series int `json:"series"`
	// State is the furthest of the alerts, empty for a recording rule.
	State  State        `json:"state,omitempty"`
	Alerts []AlertState `json:"alerts,omitempty"`
}

// AlertState is an alert with what raised it.
type AlertState struct {
	Alert
	// Because is what the selectors of the expression yield for the alert,
	// where a Report was asked to explain.
	Because []Cause `json:"because,omitempty"`
}

// Cause is one series that a part of an alert's expression yields.
type Cause struct {
	// Expr is the selector, or the function call around a range.
	Expr   string            `json:"expr"`
	Labels map[string]string `json:"labels"`
	Value  Number            `json:"value"`
}
