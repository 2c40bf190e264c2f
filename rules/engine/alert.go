package engine

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// State is the state of an alert.
type State string

// An alert that has resolved is Inactive.
const (
	Inactive State = "inactive"
	Pending  State = "pending"
	Firing   State = "firing"
)

// Alert is one alert of one rule. Its Labels identify it. The time of an event
// that has not happened is zero.
type Alert struct {
	// Labels are the labels of the series that raised the alert and of the
	// rule, with alertname. The notifier adds the external labels.
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       State             `json:"state"`
	// Value is the value of the expression when it last yielded the alert.
	Value model.SampleValue `json:"value"`
	// ActiveAt is when the alert became pending, FiredAt when it started to
	// fire, ResolvedAt when it resolved.
	ActiveAt   time.Time `json:"active_at,omitzero"`
	FiredAt    time.Time `json:"fired_at,omitzero"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	// KeepFiringSince is when the expression stopped yielding an alert that
	// keep_firing_for keeps firing.
	KeepFiringSince time.Time `json:"keep_firing_since,omitzero"`
	// LastSentAt is when the alert was last passed to Options.Notify, and
	// ValidUntil the end of that notification: a receiver without a newer one
	// resolves the alert then.
	LastSentAt time.Time `json:"last_sent_at,omitzero"`
	ValidUntil time.Time `json:"valid_until,omitzero"`
	// GeneratorURL is a page that shows the alert; empty without
	// Options.ExternalURL.
	GeneratorURL string `json:"generator_url,omitempty"`
}

// EndsAt is the end that a notification carries: when the alert resolved, else
// ValidUntil.
func (a *Alert) EndsAt() time.Time {
	if !a.ResolvedAt.IsZero() {
		return a.ResolvedAt
	}
	return a.ValidUntil
}

// Urgency is smaller for more urgent alerts: by state, then by severity.
func (a *Alert) Urgency() int {
	state := slices.Index([]State{Firing, Pending, Inactive}, a.State)
	severity := slices.Index([]string{"critical", "warning", "info"}, a.Labels["severity"])
	if severity < 0 {
		severity = 3
	}
	return 4*state + severity
}
