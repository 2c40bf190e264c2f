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

// Limits of one template: bytes of its text, and queries.
const (
	maxExpanded = 16 << 10
	maxQueries  = 64
)

// variables are the definitions that Prometheus puts before each template.
const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

var (
	errTooManyQueries = fmt.Errorf("more than %d queries", maxQueries)
	errTooLong        = fmt.Errorf("more than %d bytes", maxExpanded)
)

// expander executes templates, one at a time.
type expander struct {
	url  *url.URL
	made template.FuncMap // the functions, created on first use

	// For one rule at a time:
	ask func(expr string) (promql.Vector, error)
	at  time.Time
	// asked counts the queries of the current text.
	asked int
	// answers are the results of the queries of the current rule, whose alerts
	// share queries. No samples are written meanwhile.
	answers map[string]answer
}

type answer struct {
	vector promql.Vector
	err    error
}

// begin starts the templates of another rule.
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

// texts are the templates of one alerting rule, parsed on first use.
type texts map[string]*template.Template

// details is the data of a template. It has the type that Prometheus gives it,
// which a template can print.
type details = struct {
	Labels         map[string]string
	ExternalLabels map[string]string
	ExternalURL    string
	Value          any
}

// expand returns the text of one label or annotation. For a template that fails
// the text shows the error, which is returned too.
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
		return strings.ToValidUTF8(made, "\uFFFD"), errors.New("the text is not valid UTF-8")
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
	err = t.Execute(&b, *about)
	return b.String(), err
}

// bounded is a buffer that stops a template that writes too much.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	n, _ := b.Buffer.Write(p[:min(len(p), maxExpanded+1-b.Len())])
	if n < len(p) || b.Len() > maxExpanded {
		return n, errTooLong
	}
	return n, nil
}

// templateError is the text of err without the internal template name and
// line, which are not part of the rule file.
func templateError(err error) string {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, "__alert_"); ok {
		if _, rest, ok = strings.Cut(rest, ": "); ok {
			return rest
		}
	}
	return text
}
