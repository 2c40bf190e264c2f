package engine

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
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

// resolvedRetention is how long a resolved alert is sent again, for a receiver
// that was away when it resolved.
const resolvedRetention = 15 * time.Minute

// alert is an Alert of an Engine. Its maps do not change.
type alert struct {
	Alert
	labels labels.Labels
}

// addNeeds adds what the rule reads.
func (r *rule) addNeeds(ns needs) {
	// A rule that looks at a fixed time is skipped.
	_ = selectors(r.Expr, func(s *parser.VectorSelector, reach time.Duration) {
		ns.add(nameOf(s.LabelMatchers), reach)
	})
	if r.Alert != "" {
		for _, texts := range [][]labels.Label{r.labels, r.annotations} {
			for _, l := range texts {
				ns.templateNeeds(l.Value)
			}
		}
	}
}

// evaluateAlert evaluates the expression of an alerting rule and updates its
// alerts.
func (e *Engine) evaluateAlert(ctx context.Context, g *group, r *rule, now time.Time) (promql.Vector, error) {
	result, err := e.query(ctx, r.query, now)
	if err != nil {
		return nil, err
	}
	raised, err := e.raise(ctx, r, result, now)
	if err != nil {
		return nil, err
	}
	return e.settle(g, r, raised, now)
}

// settle updates the alerts of a rule whose expression yields raised. It returns
// the samples of ALERTS and ALERTS_FOR_STATE.
func (e *Engine) settle(g *group, r *rule, raised map[uint64]*alert, now time.Time) (promql.Vector, error) {
	if len(raised) == 0 {
		e.note(r.templates, nil) // none was expanded
	}
	for hash, a := range raised {
		if known, ok := r.active[hash]; ok && known.State != Inactive {
			known.Value, known.Annotations = a.Value, a.Annotations
		} else {
			r.active[hash] = a
		}
	}
	var vector promql.Vector
	active := 0
	// The order of alerts is the order in which series are created, which
	// decides what a limit leaves out.
	for _, hash := range slices.Sorted(maps.Keys(r.active)) {
		a := r.active[hash]
		switch _, still := raised[hash]; {
		case still:
			a.KeepFiringSince = time.Time{}
			if a.State == Pending && now.Sub(a.ActiveAt) >= r.For {
				a.State, a.FiredAt = Firing, now
			}
		case e.ring.incomplete() && a.State != Inactive:
			// The series behind it may be among those left out.
		case !a.cease(r, now):
			delete(r.active, hash)
			continue
		}
		if a.State == Inactive {
			continue
		}
		active++
		vector = append(vector, r.samples(a, now)...)
	}
	if g.Limit > 0 && active > g.Limit {
		clear(r.active)
		return nil, fmt.Errorf("found %d alerts; the group's limit is %d", active, g.Limit)
	}
	return vector, nil
}

// cease updates an alert that the expression no longer yields. It reports
// false when the alert can be forgotten.
func (a *alert) cease(r *rule, now time.Time) bool {
	switch a.State {
	case Pending:
		return false
	case Inactive:
		return now.Sub(a.ResolvedAt) <= resolvedRetention
	}
	if r.KeepFiringFor > 0 {
		if a.KeepFiringSince.IsZero() {
			a.KeepFiringSince = now
		}
		if now.Sub(a.KeepFiringSince) < r.KeepFiringFor {
			return true
		}
	}
	a.State, a.ResolvedAt = Inactive, now
	return true
}

// raise returns the alerts of a result, by the hash of their labels.
func (e *Engine) raise(ctx context.Context, r *rule, result promql.Vector, now time.Time) (map[uint64]*alert, error) {
	raised := make(map[uint64]*alert, len(result))
	b := labels.NewBuilder(labels.EmptyLabels())
	failed := error(nil)
	x := expander{url: e.external, at: now, query: func(_ context.Context, expr string, _ time.Time) (promql.Vector, error) {
		return e.query(ctx, expr, now)
	}}
	for _, sample := range result {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("templates: %w", err)
		}
		about := template.AlertTemplateData(sample.Metric.Map(), e.o.ExternalLabels, e.o.ExternalURL, sample)
		expand := func(text string) string {
			made, err := x.expand(ctx, r.Alert, text, about)
			if err != nil {
				failed = err
			}
			return made
		}
		b.Reset(sample.Metric)
		b.Del(model.MetricNameLabel)
		for _, l := range r.labels {
			b.Set(l.Name, expand(l.Value))
		}
		b.Set(labels.AlertName, r.Alert)
		a := &alert{labels: b.Labels()}
		a.Alert = Alert{
			Labels: a.labels.Map(), Annotations: make(map[string]string, len(r.annotations)), State: Pending,
			Value: model.SampleValue(sample.F), ActiveAt: now,
		}
		if e.o.ExternalURL != "" {
			a.GeneratorURL = strings.TrimSuffix(e.o.ExternalURL, "/") + "/debug/rules#" + r.Alert
		}
		hash := a.labels.Hash()
		if _, twice := raised[hash]; twice {
			return nil, errSameLabels
		}
		raised[hash] = a
		for _, l := range r.annotations {
			a.Annotations[l.Name] = expand(l.Value)
		}
	}
	e.note(r.templates, failed)
	return raised, nil
}

// samples are the series of an alert in the ring. As in Prometheus, a label
// of the rule whose template yields an empty text appears unexpanded.
func (r *rule) samples(a *alert, now time.Time) promql.Vector {
	b := labels.NewBuilder(a.labels)
	for _, l := range r.labels {
		if !a.labels.Has(l.Name) {
			b.Set(l.Name, l.Value)
		}
	}
	t := now.UnixMilli()
	b.Set(model.MetricNameLabel, "ALERTS_FOR_STATE")
	since := promql.Sample{Metric: b.Labels(), T: t, F: float64(a.ActiveAt.Unix())}
	b.Set(model.MetricNameLabel, "ALERTS")
	b.Set("alertstate", string(a.State))
	return promql.Vector{{Metric: b.Labels(), T: t, F: 1}, since}
}

// deviceValidity is the least validity of a notification about a device. An exporter that
// dies is no recovery: within this time it can come back without a second page. A device
// that was repaired by a reboot resolves when it ends.
const deviceValidity = 15 * time.Minute

// toSend returns the alerts that are due to be sent. An alert whose rule fails
// is still sent: a failed evaluation does not resolve an alert.
func (e *Engine) toSend(now time.Time) []Alert {
	var all []Alert
	for _, g := range e.groups {
		for _, r := range g.rules {
			for _, a := range r.active {
				if !a.due(now, e.o.Resend) {
					continue
				}
				a.LastSentAt = now
				// Two evaluations, or two attempts to send, may fail.
				valid := 4 * max(g.interval, e.o.Resend)
				if a.labels.Has("device") {
					valid = max(valid, deviceValidity)
				}
				a.ValidUntil = now.Add(valid)
				all = append(all, a.Alert)
			}
		}
	}
	slices.SortFunc(all, compareAlerts)
	return all
}

func (a *alert) due(now time.Time, resend time.Duration) bool {
	switch {
	case a.State == Pending:
		return false
	case a.ResolvedAt.After(a.LastSentAt):
		return true
	}
	return a.LastSentAt.Add(resend).Before(now)
}

func compareAlerts(a, b Alert) int {
	return labels.Compare(labels.FromMap(a.Labels), labels.FromMap(b.Labels))
}

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
