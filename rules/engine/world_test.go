package engine_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an engine with the page that it reads and the alerts that it sends.
type world struct {
	*engine.Engine
	t testing.TB
	// start is the first evaluation, now the latest.
	start, now time.Time

	mu   sync.Mutex
	page string
	err  error
	sent []engine.Alert
	log  strings.Builder
}

func newWorld(t testing.TB, text string, change ...func(*engine.Options)) *world {
	t.Helper()
	w := &world{t: t, start: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)}
	w.now = w.start
	o := engine.Options{
		Page: w, Rules: parse(t, text),
		Labels: map[string]string{"job": "accel-exporter", "instance": "n1"},
		Notify: func(alerts []engine.Alert) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sent = append(w.sent, alerts...)
		},
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	if w.Engine, err = engine.New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

func parse(t testing.TB, text string) *engine.Set {
	t.Helper()
	set, err := engine.Parse(map[string][]byte{"rules.yaml": []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// group returns a rule file with one group.
func group(text string) string {
	return "groups:\n- name: g\n  rules:\n" + strings.ReplaceAll("  "+strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// Gather implements prometheus.Gatherer.
func (w *world) Gather() ([]*dto.MetricFamily, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(w.page))
	if err != nil {
		w.t.Errorf("invalid page: %v", err)
	}
	return slices.Collect(maps.Values(families)), w.err
}

// set replaces the page. Each line is a series.
func (w *world) set(lines ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.page = strings.Join(lines, "\n") + "\n"
}

// at evaluates at a time after the start.
func (w *world) at(d time.Duration) {
	w.t.Helper()
	w.now = w.start.Add(d)
	w.Eval(w.t.Context(), w.now, true)
}

// take returns the alerts sent since the last take. The text of an alert has its
// state, or "resolved", its name and its labels.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, a := range w.sent {
		all = append(all, describe(a))
	}
	w.sent = nil
	return all
}

func describe(a engine.Alert) string {
	state := string(a.State)
	if !a.ResolvedAt.IsZero() {
		state = "resolved"
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != "alertname" && name != "job" && name != "instance" {
			labels = append(labels, name+"="+a.Labels[name])
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", state, a.Labels["alertname"], strings.Join(labels, " ")))
}

// alerts returns the alerts of the engine in the form of take.
func (w *world) alerts() []string {
	var all []string
	for _, a := range w.Alerts() {
		all = append(all, describe(a))
	}
	return all
}

// query evaluates an expression at the latest evaluation, and returns a text for
// each series.
func (w *world) query(expr string) []string {
	w.t.Helper()
	v, err := w.Query(w.t.Context(), expr, w.now)
	if err != nil {
		w.t.Fatalf("%s: %v", expr, err)
	}
	var all []string
	for _, s := range v {
		all = append(all, fmt.Sprintf("%s %v", s.Metric, s.F))
	}
	slices.Sort(all)
	return all
}

// rule returns the state of the rule of that name.
func (w *world) rule(name string) engine.RuleState {
	w.t.Helper()
	for _, g := range w.Groups() {
		for _, r := range g.Rules {
			if r.Name == name {
				return r
			}
		}
	}
	w.t.Fatalf("no rule %s", name)
	panic("unreachable")
}
