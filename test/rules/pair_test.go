package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql"
	upstream "github.com/prometheus/prometheus/rules"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// options are what both evaluate with.
type options struct {
	rules            string // a rule file
	interval, resend time.Duration
	target, external map[string]string
	externalURL      string
}

func (o options) url() *url.URL {
	u, err := url.Parse(o.externalURL)
	if err != nil {
		panic(err)
	}
	return u
}

// pair is both engines over the same pages.
type pair struct {
	t      testing.TB
	o      options
	ours   *engine.Engine
	theirs *prometheus
	// recorded are the names that rules write to.
	recorded []string

	page []*dto.MetricFamily
	err  error
	sent []string
	// steps counts; fired are the alerts that have fired, failed the rules
	// that have failed.
	steps         int
	fired, failed map[string]bool
}

func newPair(t testing.TB, o options) *pair {
	t.Helper()
	o.interval, o.resend = cmp.Or(o.interval, 15*time.Second), cmp.Or(o.resend, time.Minute)
	p := &pair{
		t: t, o: o, theirs: newPrometheus(t, o), fired: map[string]bool{}, failed: map[string]bool{},
		recorded: []string{"ALERTS", "ALERTS_FOR_STATE"},
	}
	var err error
	p.ours, err = engine.New(engine.Options{
		Page: p, Rules: p.parse(o.rules), Labels: o.target, ExternalLabels: o.external, ExternalURL: o.externalURL,
		Interval: o.interval, Resend: o.resend,
		Notify: func(alerts []engine.Alert) {
			for _, a := range alerts {
				p.sent = append(p.sent, notice(a.Labels, a.Annotations, a.FiredAt, a.EndsAt()))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parse reads rules for the engine.
func (p *pair) parse(text string) *engine.Set {
	set, err := engine.Parse(map[string][]byte{file: []byte(text)})
	if err != nil {
		p.t.Fatalf("the engine refuses the rules: %v\n%s", err, text)
	}
	for _, g := range set.Groups {
		for _, r := range g.Rules {
			if r.Record != "" && !slices.Contains(p.recorded, r.Record) {
				p.recorded = append(p.recorded, r.Record)
			}
		}
	}
	return set
}

// Gather implements prometheus.Gatherer.
func (p *pair) Gather() ([]*dto.MetricFamily, error) { return p.page, p.err }

var errDown = errors.New("the page cannot be made")

// step gives both a page, evaluates what is due and ends the test if they differ.
func (p *pair) step(at time.Time, page []*dto.MetricFamily, up bool) {
	p.t.Helper()
	p.steps++
	p.page, p.err, p.sent = page, nil, nil
	if !up {
		p.page, p.err = nil, errDown
	}
	p.ours.Eval(p.t.Context(), at, false)
	p.theirs.scrape(at, page, up)
	p.theirs.evaluate(at)
	p.theirs.sendHeld(at, p.o.resend)
	if d := p.compare(at); len(d) > 0 {
		p.t.Fatalf("step %d, at %d.%03d, interval %v, resend %v: they differ\n%s",
			p.steps, at.Unix(), at.UnixMilli()%1000, p.o.interval, p.o.resend, strings.Join(d, "\n"))
	}
}

func (p *pair) compare(at time.Time) []string {
	var all []string
	differ := func(what string, ours, theirs []string) {
		for _, d := range difference(ours, theirs) {
			all = append(all, what+": "+d)
		}
	}
	for i, g := range p.ours.Report().Groups {
		theirs := p.theirs.groups[i]
		if evaluated := g.LastEvaluation.Equal(at); evaluated != theirs.last.Equal(at) {
			all = append(all, fmt.Sprintf("group %s: evaluated %v, in Prometheus %v", g.Name, evaluated, !evaluated))
		}
		for n, r := range g.Rules {
			if r.Skipped != "" {
				all = append(all, fmt.Sprintf("rule %s: skipped", r.Name))
			}
			rule := theirs.Rules()[n]
			what := fmt.Sprintf("rule %d of group %s, %s", n+1, g.Name, r.Name)
			if failed := rule.LastError() != nil; failed != (r.Health == engine.HealthError) {
				all = append(all, fmt.Sprintf("%s: error %q, in Prometheus %q", what, r.LastError, fmt.Sprint(rule.LastError())))
			} else if failed {
				p.failed[r.Name] = true
			}
			if a, ok := rule.(*upstream.AlertingRule); ok {
				differ(what, p.ourAlerts(r), theirAlerts(a))
			}
		}
	}
	differ("sent", p.sent, p.theirs.sent)
	exprs := []string{fmt.Sprintf("{__name__=~%q}", strings.Join(p.recorded, "|"))}
	if len(p.recorded) < 20 { // each costs two queries
		for _, name := range p.recorded {
			exprs = append(exprs, "timestamp("+name+")")
		}
	}
	for _, expr := range exprs {
		differ(expr, p.texts(p.ours.Query, expr, at), p.texts(p.theirs.query, expr, at))
	}
	return all
}

func (p *pair) ourAlerts(r engine.RuleState) []string {
	var all []string
	for _, a := range r.Alerts {
		if a.State == engine.Firing {
			p.fired[r.Name] = true
		}
		all = append(all, alertText(a.Labels, a.Annotations, string(a.State), float64(a.Value),
			a.ActiveAt, a.FiredAt, a.ResolvedAt, a.KeepFiringSince, a.LastSentAt, a.ValidUntil))
	}
	return all
}

func theirAlerts(r *upstream.AlertingRule) []string {
	var all []string
	r.ForEachActiveAlert(func(a *upstream.Alert) {
		all = append(all, alertText(a.Labels.Map(), a.Annotations.Map(), a.State.String(), a.Value,
			a.ActiveAt, a.FiredAt, a.ResolvedAt, a.KeepFiringSince, a.LastSentAt, validUntil(a)))
	})
	return all
}

// texts returns what a query yields.
func (p *pair) texts(query func(context.Context, string, time.Time) (promql.Vector, error), expr string, at time.Time) []string {
	v, err := query(p.t.Context(), expr, at)
	if err != nil {
		return []string{"an error"}
	}
	all := make([]string, 0, len(v))
	for _, s := range v {
		all = append(all, s.Metric.String()+" "+number(s.F))
	}
	return all
}
