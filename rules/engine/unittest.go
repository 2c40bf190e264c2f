package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// Bounds of one unit test: of the samples that its series are written with,
// and of its evaluations.
const (
	maxTestSamples = 1_000_000
	maxTestSteps   = 1_000_000
)

// testFile is a file of unit tests as promtool takes it.
type testFile struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	GroupEvalOrder     []string       `yaml:"group_eval_order"`
	Tests              []unitTest     `yaml:"tests"`
	FuzzyCompare       bool           `yaml:"fuzzy_compare"`
}

type unitTest struct {
	Name           string            `yaml:"name"`
	Interval       model.Duration    `yaml:"interval"`
	InputSeries    []testSeries      `yaml:"input_series"`
	Alerts         []alertTest       `yaml:"alert_rule_test"`
	Exprs          []exprTest        `yaml:"promql_expr_test"`
	ExternalLabels map[string]string `yaml:"external_labels"`
	ExternalURL    string            `yaml:"external_url"`
	StartTimestamp string            `yaml:"start_timestamp"`
}

type testSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	EvalTime  model.Duration  `yaml:"eval_time"`
	Alertname string          `yaml:"alertname"`
	Expected  []expectedAlert `yaml:"exp_alerts"`
}

type expectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

type exprTest struct {
	Expr     string           `yaml:"expr"`
	EvalTime model.Duration   `yaml:"eval_time"`
	Expected []expectedSample `yaml:"exp_samples"`
}

type expectedSample struct {
	Labels    string  `yaml:"labels"`
	Value     float64 `yaml:"value"`
	Histogram string  `yaml:"histogram"`
}

// Test runs unit tests of rules in promtool's format, given by path or
// pattern, and writes for each file how it went. Native histograms are not
// supported. The error has all that failed, or could not be read.
func Test(ctx context.Context, w io.Writer, patterns ...string) error {
	paths, err := strict.Glob(patterns)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		n, err := testOne(ctx, path)
		verdict := fmt.Sprintf("%d tests passed", n)
		if err != nil {
			verdict = "failed"
			errs = append(errs, err)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", path, verdict); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// testOne runs the tests of one file and returns how many there are.
func testOne(ctx context.Context, path string) (int, error) {
	data, err := strict.NewFile(path).Read()
	if err != nil {
		return 0, err
	}
	f, err := parseTests(data)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	patterns := make([]string, len(f.RuleFiles))
	for i, p := range f.RuleFiles {
		if patterns[i] = p; !filepath.IsAbs(p) {
			patterns[i] = filepath.Join(filepath.Dir(path), p)
		}
	}
	set, err := Load(patterns...)
	if err != nil {
		return 0, fmt.Errorf("%s: rule_files: %w", path, err)
	}
	order := func(g *Group) int { return max(0, slices.Index(f.GroupEvalOrder, g.Name)) }
	slices.SortStableFunc(set.Groups, func(a, b *Group) int { return order(a) - order(b) })
	var errs []error
	for i := range f.Tests {
		t := &f.Tests[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("test %d", i+1)
		}
		for _, err := range t.run(ctx, f, set) {
			errs = append(errs, fmt.Errorf("%s: %s: %w", path, t.Name, err))
		}
	}
	return len(f.Tests), errors.Join(errs...)
}

// parseTests reads a file of unit tests.
func parseTests(data []byte) (f *testFile, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("is not YAML: the parser gave up: %v", r)
		}
	}()
	if len(data) > strict.MaxSize {
		return nil, fmt.Errorf("found more than %d bytes; accepted is a file of at most that size", strict.MaxSize)
	}
	f = new(testFile)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if f.EvaluationInterval == 0 {
		f.EvaluationInterval = model.Duration(time.Minute)
	}
	return f, nil
}

// input is one series of a test.
type input struct {
	series *series
	values []parser.SequenceValue
}

// run plays one test and returns what went otherwise than expected.
func (t *unitTest) run(ctx context.Context, f *testFile, set *Set) []error {
	start, err := t.start()
	if err != nil {
		return []error{err}
	}
	interval := time.Duration(f.EvaluationInterval)
	if t.Interval == 0 {
		t.Interval = f.EvaluationInterval
	}
	if n := t.longest() / interval; n > maxTestSteps {
		return []error{fmt.Errorf("found %d evaluations; accepted are at most %d", n, maxTestSteps)}
	}
	e, err := newEngine(Options{Interval: interval, ExternalLabels: t.ExternalLabels, ExternalURL: t.ExternalURL}.bare())
	if err != nil {
		return []error{err}
	}
	e.ring.all = true
	e.Apply(set)
	inputs, err := t.inputs(e.ring)
	if err != nil {
		return []error{err}
	}
	samples := 0
	for _, in := range inputs {
		samples = max(samples, len(in.values))
	}
	var errs []error
	fed := 0
	times := t.alertTimes()
	for step := range t.longest()/interval + 1 {
		at := step * interval
		now := start.Add(at)
		for ; fed < samples && !start.Add(time.Duration(fed)*time.Duration(t.Interval)).After(now); fed++ {
			e.ring.advance(start.Add(time.Duration(fed) * time.Duration(t.Interval)).UnixMilli())
			feedInputs(e.ring, inputs, fed)
		}
		e.ring.advance(now.UnixMilli())
		e.last = now
		e.evaluate(ctx, now, every)
		if err := cmp.Or(ctx.Err(), e.firstError()); err != nil {
			return append(errs, fmt.Errorf("at %s: %w", model.Duration(at), err))
		}
		for len(times) > 0 && times[0]-at < interval {
			errs = append(errs, t.checkAlerts(e, times[0])...)
			times = times[1:]
		}
	}
	for i := range t.Exprs {
		if err := t.Exprs[i].check(ctx, e, start, f.FuzzyCompare); err != nil {
			errs = append(errs, fmt.Errorf("expr %q at %s: %w", t.Exprs[i].Expr, t.Exprs[i].EvalTime, err))
		}
	}
	return errs
}

// bare returns options for an engine that is fed by hand.
func (o Options) bare() Options {
	o.Limits = Limits{Series: maxTestSamples, Bytes: 1 << 40, Range: 1 << 62}
	o, _ = o.withDefaults()
	return o
}

// start is when the test begins: an RFC 3339 time or seconds since the epoch.
func (t *unitTest) start() (time.Time, error) {
	if t.StartTimestamp == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	if s, err := strconv.ParseFloat(t.StartTimestamp, 64); err == nil && s >= 0 && s < 1e11 {
		return time.UnixMilli(int64(s * 1000)).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, t.StartTimestamp)
	if err != nil {
		return at, fmt.Errorf("start_timestamp: found %s; accepted is a time such as 2026-01-02T15:04:05Z or seconds since the epoch", wording.Quote(t.StartTimestamp))
	}
	return at.UTC(), nil
}

// longest is when the last expectation is looked at.
func (t *unitTest) longest() time.Duration {
	var d model.Duration
	for _, a := range t.Alerts {
		d = max(d, a.EvalTime)
	}
	for _, x := range t.Exprs {
		d = max(d, x.EvalTime)
	}
	return time.Duration(d)
}

func (t *unitTest) alertTimes() []time.Duration {
	times := map[time.Duration]bool{}
	for _, a := range t.Alerts {
		times[time.Duration(a.EvalTime)] = true
	}
	return slices.Sorted(maps.Keys(times))
}

// firstError returns why a rule failed in the last evaluation.
func (e *Engine) firstError() error {
	for _, g := range e.groups {
		for _, r := range g.rules {
			if r.err != nil {
				return fmt.Errorf("%s: %w", r.where, r.err)
			}
		}
	}
	return nil
}
