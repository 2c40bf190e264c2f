package exposition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// double is a View that shows every reading twice as large, under another
// name; readings below zero have no value.
type double struct{}

var (
	doubled      = &collector.Metric{Name: "twice", Help: "Twice as much.", Kind: collector.Gauge, Scope: collector.PerNode}
	doubledTotal = &collector.Metric{Name: "ALL_COUNT", Help: "All \"together\".", Kind: collector.Counter, Scope: collector.PerNode}
)

func (double) Series(s *collector.Snapshot) []exposition.Derived {
	var out []exposition.Derived
	all := 0.0
	add := func(device string, readings []collector.Reading) {
		for i := range readings {
			all++
			if readings[i].Value < 0 {
				continue
			}
			labels := []exposition.Label{{Name: "of", Value: readings[i].Metric.Name}, {Name: "device", Value: device}}
			labels = append(labels, exposition.Label{Name: "labels", Value: strings.Join(readings[i].Labels, ";")})
			out = append(out, exposition.Derived{Metric: doubled, Labels: labels, Value: 2 * readings[i].Value})
		}
	}
	for _, d := range s.Devices {
		add(d.ID, d.Readings)
	}
	add("", s.Node)
	return append(out, exposition.Derived{Metric: doubledTotal, Value: all})
}

// Derived series follow their readings from one Snapshot to the next, and go
// with them.
func TestView(t *testing.T) {
	m := collector.TemperatureCelsius
	at := func(values ...float64) *collector.Snapshot {
		s := &collector.Snapshot{}
		for i, v := range values {
			s.Devices = append(s.Devices, collector.Device{ID: fmt.Sprint("GPU-", i), Readings: []collector.Reading{{Metric: m, Labels: []string{"gpu"}, Value: v}}})
		}
		return s
	}
	s := at(40, 50)
	e := exposition.New(func() *collector.Snapshot { return s }, nil, exposition.Options{})
	e.Apply(exposition.Settings{View: double{}})
	series := func(device string, v string) string {
		return fmt.Sprintf("\ntwice{device=%q,labels=\"gpu\",of=\"accel_temperature_celsius\"} %s\n", device, v)
	}
	for _, step := range []struct {
		s          *collector.Snapshot
		has, lacks []string
	}{
		{at(40, 50), []string{series("GPU-0", "80"), series("GPU-1", "100"), "\nALL_COUNT 2\n", "# TYPE ALL_COUNT counter\n"}, nil},
		{at(41, 51), []string{series("GPU-0", "82"), series("GPU-1", "102")}, nil},
		{at(41, -5), []string{series("GPU-0", "82"), "accel_temperature_celsius{device=\"GPU-1\",sensor=\"gpu\"} -5\n"}, []string{`twice{device="GPU-1"`}},
		{at(42, 52), []string{series("GPU-0", "84"), series("GPU-1", "104")}, nil},
		{at(43), []string{series("GPU-0", "86"), "\nALL_COUNT 1\n"}, []string{"GPU-1"}},
	} {
		s = step.s
		_, _, page := get(t, e, "Accept", text)
		page = "\n" + page
		for _, want := range step.has {
			if !strings.Contains(page, want) {
				t.Errorf("lacks %q:\n%s", want, page)
			}
		}
		for _, no := range step.lacks {
			if strings.Contains(page, no) {
				t.Errorf("has %q:\n%s", no, page)
			}
		}
	}
	e.Apply(exposition.Settings{})
	if _, _, page := get(t, e, "Accept", text); strings.Contains(page, "twice") {
		t.Errorf("the view is gone and its series are not:\n%s", page)
	}
}
