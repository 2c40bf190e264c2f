package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// Limits of one template: bytes of its text, and queries.
const (
	maxExpanded = 16 << 10
	maxQueries  = 64
)

// variables are the definitions that Prometheus puts before each template.
const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

var errTooManyQueries = fmt.Errorf("more than %d queries", maxQueries)

// expander expands the templates of one rule at one time.
type expander struct {
	url *url.URL
	at  time.Time
	ask func(expr string) (promql.Vector, error)
	// asked counts the queries of the current text.
	asked int
	// answers are the results of the queries: the alerts of a rule share them, and
	// no samples are written meanwhile.
	answers map[string]answer
}

type answer struct {
	vector promql.Vector
	err    error
}

func (x *expander) query(_ context.Context, expr string, _ time.Time) (promql.Vector, error) {
	if x.asked++; x.asked > maxQueries {
		return nil, errTooManyQueries
	}
	a, known := x.answers[expr]
	if !known {
		a.vector, a.err = x.ask(expr)
		if x.answers == nil {
			x.answers = map[string]answer{}
		}
		x.answers[expr] = a
	}
	return a.vector, a.err
}

// template returns a template of an alert in Prometheus' language.
func (x *expander) template(ctx context.Context, alert, text string, about any) *template.Expander {
	x.asked = 0
	return template.NewTemplateExpander(ctx, variables+text, "__alert_"+alert, about, model.TimeFromUnixNano(x.at.UnixNano()), x.query, x.url, nil)
}

// expand returns the text of one label or annotation. For a template that fails
// the text shows the error, which is returned too.
func (x *expander) expand(ctx context.Context, alert, text string, about any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	made, err := x.template(ctx, alert, text, about).Expand()
	switch {
	case err != nil:
		return fmt.Sprintf("<error expanding template: %s>", templateError(err)), err
	case len(made) > maxExpanded:
		return strings.ToValidUTF8(made[:maxExpanded], "") + "…", nil
	case !utf8.ValidString(made):
		return strings.ToValidUTF8(made, "\uFFFD"), errors.New("the text is not valid UTF-8")
	}
	return made, nil
}

// templateError is the text of err without the internal template name and
// line, which are not part of the rule file.
func templateError(err error) string {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, "template: __alert_"); ok {
		if _, rest, ok = strings.Cut(rest, ": "); ok {
			return rest
		}
	}
	return text
}
