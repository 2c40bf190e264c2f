package engine

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/template"
)

// maxExpanded bounds the text of one template, in bytes.
const maxExpanded = 16 << 10

// variables are the definitions that Prometheus puts before each template.
const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

// expander expands the templates of one rule at one time.
type expander struct {
	url *url.URL
	at  time.Time
	// query evaluates an expression of a template.
	query template.QueryFunc
}

// template returns a template of an alert in Prometheus' language.
func (x *expander) template(ctx context.Context, alert, text string, about any) *template.Expander {
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
	}
	return strings.ToValidUTF8(made, "\uFFFD"), nil
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
