package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// Bounds of one template: of the text that it makes, in bytes, and of the
// queries that it asks.
const (
	maxExpanded = 16 << 10
	maxQueries  = 64
)

// variables are what Prometheus puts before each template.
const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

var errTooManyQueries = fmt.Errorf("more than %d queries", maxQueries)

// checkTemplate says why a template of the alert does not parse.
func checkTemplate(ctx context.Context, alert, text string) error {
	if !strings.Contains(text, "{{") {
		return nil
	}
	data := template.AlertTemplateData(nil, nil, "", promql.Sample{})
	return template.NewTemplateExpander(ctx, variables+text, "__alert_"+alert, data, 0, nil, nil, nil).ParseTest()
}

// templateError is the text of err without what Go's parser says of names and
// lines that the writer of the rule never saw.
func templateError(err error) string {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, "__alert_"); ok {
		if _, rest, ok = strings.Cut(rest, ": "); ok {
			return rest
		}
	}
	return text
}

// expandText makes the text of one label or annotation. A template that fails
// leaves a text that says so, and the error.
func (e *Engine) expandText(ctx context.Context, r *rule, text string, data any, at time.Time) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	asked := 0
	query := func(ctx context.Context, q string, at time.Time) (promql.Vector, error) {
		if asked++; asked > maxQueries {
			return nil, errTooManyQueries
		}
		return e.query(ctx, q, at)
	}
	made, err := template.NewTemplateExpander(ctx, variables+text, "__alert_"+r.Alert, data, model.TimeFromUnixNano(at.UnixNano()), query, e.url, nil).Expand()
	switch {
	case err != nil:
		made = fmt.Sprintf("<error expanding template: %s>", templateError(err))
	case !utf8.ValidString(made):
		err = errors.New("made a text that is not UTF-8")
		made = strings.ToValidUTF8(made, "\uFFFD")
	}
	if len(made) > maxExpanded {
		made = strings.ToValidUTF8(made[:maxExpanded], "") + "…"
	}
	return made, err
}
