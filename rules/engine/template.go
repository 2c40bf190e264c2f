package engine

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/promql"
)

// Bounds of one template: of the text that it makes, in bytes, and of the
// queries that it asks.
const (
	maxExpanded = 16 << 10
	maxQueries  = 64
)

// variables are what Prometheus puts before each template.
const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

var (
	errTooManyQueries = fmt.Errorf("more than %d queries", maxQueries)
	errTooLong        = fmt.Errorf("more than %d bytes", maxExpanded)
)

// expander makes texts of templates, one at a time.
type expander struct {
	url  *url.URL
	made template.FuncMap // the functions, once they were needed

	// For one rule at a time:
	ask func(expr string) (promql.Vector, error)
	at  time.Time
	// asked counts the queries of the text that is being made.
	asked int
	// answers are those of the rule whose alerts are being raised: nothing is
	// written meanwhile, and its alerts ask the same of one device.
	answers map[string]answer
}

type answer struct {
	vector promql.Vector
	err    error
}

// begin has the expander work for another rule.
func (x *expander) begin(at time.Time, ask func(expr string) (promql.Vector, error)) {
	x.at, x.ask, x.answers = at, ask, nil
}

func (x *expander) query(expr string) ([]*seriesValue, error) {
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
	return answered(a.vector), a.err
}

func (x *expander) parse(alert, text string) (*template.Template, error) {
	if x.made == nil {
		x.made = x.functions()
	}
	return template.New("__alert_" + alert).Funcs(x.made).Option("missingkey=zero").Parse(variables + text)
}

// texts are the templates of one alerting rule, parsed when an alert first
// needs them.
type texts map[string]*template.Template

// details are what a template sees.
type details struct {
	Labels, ExternalLabels map[string]string
	ExternalURL            string
	Value                  float64
}

// expand makes the text of one label or annotation. A template that fails
// leaves a text that says so, and the error.
func (x *expander) expand(r *rule, text string, about *details) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	made, err := x.execute(r, text, about)
	switch {
	case errors.Is(err, errTooLong):
		return strings.ToValidUTF8(made[:maxExpanded], "") + "…", nil
	case err != nil:
		return fmt.Sprintf("<error expanding template: %s>", templateError(err)), err
	case !utf8.ValidString(made):
		return strings.ToValidUTF8(made, "\uFFFD"), errors.New("made a text that is not UTF-8")
	}
	return made, nil
}

func (x *expander) execute(r *rule, text string, about *details) (made string, err error) {
	t := r.texts[text]
	if t == nil {
		if t, err = x.parse(r.Alert, text); err != nil {
			return "", err
		}
		if r.texts == nil {
			r.texts = texts{}
		}
		r.texts[text] = t
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	x.asked = 0
	var b bounded
	err = t.Execute(&b, about)
	return b.String(), err
}

// bounded ends the template that writes too much into it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	n, _ := b.Buffer.Write(p[:min(len(p), maxExpanded+1-b.Len())])
	if n < len(p) || b.Len() > maxExpanded {
		return n, errTooLong
	}
	return n, nil
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
