package engine

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Shift simulates that the clock was set by by.
func (e *Engine) Shift(by time.Duration) { e.shift(by) }

// ExpandTemplate expands a template for an alert with labels. Its queries return
// answer.
func ExpandTemplate(text string, labels map[string]string, value float64, at time.Time, external *url.URL, answer promql.Vector) (string, error) {
	x := &expander{url: external}
	x.begin(at, func(string) (promql.Vector, error) { return answer, nil })
	return x.expand(&rule{Rule: &Rule{Alert: "A"}}, text, &details{Labels: labels, ExternalURL: external.String(), Value: value})
}

// Before calls f before each rule is evaluated, with the context of that evaluation.
func (e *Engine) Before(f func(ctx context.Context, rule string)) { e.before = f }
