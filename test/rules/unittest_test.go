package differential

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	dto "github.com/prometheus/client_model/go"
)

// testFile is what is read of a file of unit tests.
type testFile struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []unitTest     `yaml:"tests"`
}

type unitTest struct {
	Name           string            `yaml:"name"`
	Interval       model.Duration    `yaml:"interval"`
	ExternalLabels map[string]string `yaml:"external_labels"`
	InputSeries    []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []struct {
		At model.Duration `yaml:"eval_time"`
	} `yaml:"alert_rule_test"`
	Exprs []struct {
		At model.Duration `yaml:"eval_time"`
	} `yaml:"promql_expr_test"`
}

// maxSteps is how many steps of a unit test are played. Tests that look back
// for days repeat themselves.
const maxSteps = 600

// TestUnitTests plays the series of the unit tests of rules as pages, against
// the rules that they test, the rules of a cluster included. Their expectations
// are not checked: promtool does that.
func TestUnitTests(t *testing.T) {
	paths, err := filepath.Glob("../../rules/tests/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no unit tests: %v", err)
	}
	count := *seed
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f testFile
		if err := yaml.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var patterns []string
		for _, name := range f.RuleFiles {
			patterns = append(patterns, filepath.Join(filepath.Dir(path), name))
		}
		text := readRules(t, patterns...)
		for _, test := range f.Tests {
			if count++; count%uint64(*every) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", filepath.Base(path), test.Name), func(t *testing.T) { test.play(t, text, time.Duration(f.Interval)) })
		}
	}
}

func (u *unitTest) play(t *testing.T, text string, interval time.Duration) {
	p := newPair(t, options{rules: text, interval: interval, external: u.ExternalLabels})
	step := interval
	if u.Interval != 0 {
		step = time.Duration(u.Interval)
	}
	inputs := u.inputs(t)
	start := time.Unix(1_800_000_000, 0).UTC()
	for i := 0; i < maxSteps && time.Duration(i)*step <= u.end(); i++ {
		p.step(start.Add(time.Duration(i)*step), page(inputs, i), true)
	}
}

// end is when the last expectation is looked at.
func (u *unitTest) end() time.Duration {
	var last model.Duration
	for _, a := range u.Alerts {
		last = max(last, a.At)
	}
	for _, x := range u.Exprs {
		last = max(last, x.At)
	}
	return time.Duration(last)
}

// input is one series of a unit test.
type input struct {
	family string
	labels []*dto.LabelPair
	values []parser.SequenceValue
}

func (u *unitTest) inputs(t *testing.T) []input {
	var all []input
	for _, s := range u.InputSeries {
		l, values, err := parser.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			t.Fatalf("%s: %v", s.Series, err)
		}
		in := input{family: l.Get(model.MetricNameLabel), values: values}
		l.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				in.labels = append(in.labels, &dto.LabelPair{Name: proto.String(l.Name), Value: proto.String(l.Value)})
			}
		})
		all = append(all, in)
	}
	return all
}

// page is what the inputs have at a step. A sample that is left out is a series
// that is not on the page, which ends it.
func page(inputs []input, step int) []*dto.MetricFamily {
	families := map[string]*dto.MetricFamily{}
	for _, in := range inputs {
		if step >= len(in.values) || in.values[step].Omitted || value.IsStaleNaN(in.values[step].Value) {
			continue
		}
		f := families[in.family]
		if f == nil {
			f = &dto.MetricFamily{Name: proto.String(in.family), Type: dto.MetricType_UNTYPED.Enum()}
			families[in.family] = f
		}
		f.Metric = append(f.Metric, &dto.Metric{Label: in.labels, Untyped: &dto.Untyped{Value: proto.Float64(in.values[step].Value)}})
	}
	var all []*dto.MetricFamily
	for _, name := range slices.Sorted(maps.Keys(families)) {
		all = append(all, families[name])
	}
	return all
}
