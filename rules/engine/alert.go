package engine

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// State is how far an alert is.
type State string

// Inactive stands for an alert that has resolved, too.
const (
	Inactive State = "inactive"
	Pending  State = "pending"
	Firing   State = "firing"
)

// Alert is one alert of one rule. Its Labels identify it. Times are zero where
// what they tell of has not happened.
type Alert struct {
	// Labels are those of the series that raised the alert and of the rule,
	// with alertname. They do not have the external labels, which whoever
	// sends the alert on adds.
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       State             `json:"state"`
	// Value is that of the expression when it last yielded the alert.
	Value Number `json:"value"`
	// ActiveAt is when the alert became pending, FiredAt when it began to
	// fire, ResolvedAt when it ceased to.
	ActiveAt   time.Time `json:"active_at,omitzero"`
	FiredAt    time.Time `json:"fired_at,omitzero"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	// KeepFiringSince is when the expression ceased to yield an alert that
	// fires on because of keep_firing_for.
	KeepFiringSince time.Time `json:"keep_firing_since,omitzero"`
	// LastSentAt is when the alert was last handed to Options.Notify, and
	// ValidUntil until when that was to hold: a receiver that hears no more
	// of the alert by then takes it for resolved.
	LastSentAt time.Time `json:"last_sent_at,omitzero"`
	ValidUntil time.Time `json:"valid_until,omitzero"`
	// GeneratorURL is where the alert can be looked at; empty without
	// Options.ExternalURL.
	GeneratorURL string `json:"generator_url,omitempty"`
}

// EndsAt is what a receiver is told: when the alert resolved, else ValidUntil.
func (a *Alert) EndsAt() time.Time {
	if !a.ResolvedAt.IsZero() {
		return a.ResolvedAt
	}
	return a.ValidUntil
}

// Number is a float that survives JSON: NaN and the infinities are the texts
// "NaN", "+Inf" and "-Inf".
type Number float64

// String returns the shortest form.
func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return json.Marshal(n.String())
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*float64)(n))
	}
	f, err := strconv.ParseFloat(text, 64)
	*n = Number(f)
	return err
}
