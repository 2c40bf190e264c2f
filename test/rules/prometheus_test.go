package differential

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	upstream "github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	dto "github.com/prometheus/client_model/go"
)

// prometheus is a Prometheus with one target.
type prometheus struct {
	t      testing.TB
	head   *tsdb.Head
	query  upstream.QueryFunc
	rules  *rulefmt.RuleGroups
	load   func() (map[string]*upstream.Group, []error)
	groups []*scheduled
	sent   []string

	target  map[string]string
	symbols *labels.SymbolTable
	// seen are the series of the target by their text on the page.
	seen map[string]*scraped
	// live are the series of the last scrape.
	live map[string]*scraped
	text bytes.Buffer
}

// scheduled is a group and when it was evaluated.
type scheduled struct {
	*upstream.Group
	first, last time.Time
}

type scraped struct {
	ref    storage.SeriesRef
	labels labels.Labels
	key    string // of the labels
}

// file is the name of the rule file.
const file = "rules.yaml"

// checked are rule files by their text: many tests have the same, and Prometheus'
// checks of a file take longer than most tests.
var checked = map[string]*rulefmt.RuleGroups{}

// Load makes it the loader of its rule manager.
func (p *prometheus) Load(string, bool, model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return p.rules, nil
}

func (p *prometheus) Parse(expr string) (parser.Expr, error) { return parser.ParseExpr(expr) }

func newPrometheus(t testing.TB, o options) *prometheus {
	t.Helper()
	opts := tsdb.DefaultHeadOptions()
	opts.ChunkDirRoot = t.TempDir()
	opts.StripeSize = 1 << 8
	head, err := tsdb.NewHead(nil, nil, nil, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := head.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := head.Init(0); err != nil {
		t.Fatal(err)
	}
	p := &prometheus{t: t, head: head, target: o.target, symbols: labels.NewSymbolTable(), seen: map[string]*scraped{}}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: 10 * time.Minute, LookbackDelta: 5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return o.interval.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true,
	})
	p.query = upstream.EngineQueryFunc(engine, p)
	m := upstream.NewManager(&upstream.ManagerOptions{
		Context: t.Context(), Appendable: head, Queryable: p, QueryFunc: p.query,
		NotifyFunc: func(_ context.Context, _ string, alerts ...*upstream.Alert) {
			for _, a := range alerts {
				p.sent = append(p.sent, notice(a.Labels.Map(), a.Annotations.Map(), a.FiredAt, endsAt(a)))
			}
		},
		ExternalURL: o.url(), ResendDelay: o.resend, GroupLoader: p,
	})
	p.load = func() (map[string]*upstream.Group, []error) {
		return m.LoadGroups(o.interval, labels.FromMap(o.external), o.externalURL, nil, false, file)
	}
	p.apply(o.rules)
	return p
}

// apply loads the rules.
func (p *prometheus) apply(text string) {
	var errs []error
	if p.rules = checked[text]; p.rules == nil {
		p.rules, errs = rulefmt.Parse([]byte(text), false, model.UTF8Validation)
		checked[text] = p.rules
	}
	groups, more := p.load()
	if err := errors.Join(append(errs, more...)...); err != nil {
		p.t.Fatalf("Prometheus refuses the rules: %v\n%s", err, text)
	}
	for _, g := range p.rules.Groups {
		s := &scheduled{Group: groups[upstream.GroupKey(file, g.Name)]}
		for _, r := range s.AlertingRules() {
			r.SetRestored(true) // it has begun with nothing to restore
		}
		p.groups = append(p.groups, s)
	}
}

func endsAt(a *upstream.Alert) time.Time {
	if !a.ResolvedAt.IsZero() {
		return a.ResolvedAt
	}
	return validUntil(a)
}

// validUntil is the end of a notification that is not resolved. Ours is valid for at
// least 15 minutes if it is about a device.
func validUntil(a *upstream.Alert) time.Time {
	end := a.LastSentAt.Add(15 * time.Minute)
	if a.Labels.Has("device") && !a.LastSentAt.IsZero() && a.ValidUntil.Before(end) {
		return end
	}
	return a.ValidUntil
}

// Querier makes the head a storage.Queryable.
func (p *prometheus) Querier(from, to int64) (storage.Querier, error) {
	return tsdb.NewBlockQuerier(tsdb.NewRangeHead(p.head, from, to), from, to)
}

// scrape takes the page in the text format, with honor_labels. Without a page
// the scrape failed.
func (p *prometheus) scrape(at time.Time, page []*dto.MetricFamily, up bool) {
	app := p.head.Appender(p.t.Context())
	t := at.UnixMilli()
	live := make(map[string]*scraped, len(p.live))
	add := func(text string, own func() labels.Labels, v float64) {
		s := p.seen[text]
		if s == nil {
			l := p.labelled(own())
			s = &scraped{labels: l, key: l.String()}
			p.seen[text] = s
		}
		var err error
		if s.ref, err = app.Append(s.ref, s.labels, t, v); err != nil && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			p.t.Fatalf("%s: %v", s.labels, err)
		}
		live[s.key] = s
	}
	if up {
		p.text.Reset()
		for _, f := range page {
			if _, err := expfmt.MetricFamilyToText(&p.text, f); err != nil {
				p.t.Fatal(err)
			}
		}
		in := textparse.NewPromParser(p.text.Bytes(), p.symbols, false)
		for {
			entry, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				p.t.Fatalf("the page: %v", err)
			}
			if entry != textparse.EntrySeries {
				continue
			}
			text, _, v := in.Series()
			add(string(text), func() (l labels.Labels) { in.Labels(&l); return l }, v)
		}
	}
	for name, s := range p.live {
		if live[name] == nil {
			if _, err := app.Append(s.ref, s.labels, t, math.Float64frombits(value.StaleNaN)); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	p.live = live
	v := 0.0
	if up {
		v = 1
	}
	add("up", func() labels.Labels { return labels.FromStrings(model.MetricNameLabel, "up") }, v)
	delete(live, p.seen["up"].key) // it does not end with the page
	if err := app.Commit(); err != nil {
		p.t.Fatal(err)
	}
}

// labelled adds the labels of the target that a series does not have itself.
func (p *prometheus) labelled(own labels.Labels) labels.Labels {
	b := labels.NewBuilder(own)
	for name, v := range p.target {
		if !own.Has(name) {
			b.Set(name, v)
		}
	}
	return b.Labels()
}

// evaluate evaluates the groups that are due.
func (p *prometheus) evaluate(at time.Time) {
	p.sent = nil
	for _, g := range p.groups {
		if !g.due(at) {
			continue
		}
		if g.last = at; g.first.IsZero() {
			g.first = at
		}
		g.Eval(p.t.Context(), at)
	}
}

// due reports whether a slot of the group has begun since it was evaluated.
func (g *scheduled) due(at time.Time) bool {
	return g.last.IsZero() || at.Sub(g.first)/g.Interval() > g.last.Sub(g.first)/g.Interval()
}

// sendHeld sends what Prometheus would send only once its rule is evaluated
// again: ours goes on sending alerts whose rule fails or is not due.
func (p *prometheus) sendHeld(at time.Time, resend time.Duration) {
	for _, g := range p.groups {
		for _, r := range g.AlertingRules() {
			r.ForEachActiveAlert(func(a *upstream.Alert) {
				if a.State == upstream.StatePending || !a.ResolvedAt.After(a.LastSentAt) && !a.LastSentAt.Add(resend).Before(at) {
					return
				}
				a.LastSentAt, a.ValidUntil = at, at.Add(4*max(g.Interval(), resend))
				p.sent = append(p.sent, notice(a.Labels.Map(), a.Annotations.Map(), a.FiredAt, endsAt(a)))
			})
		}
	}
}
