package exposition_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// A Histogram is written as Prometheus defines it: cumulative, with sum and
// count, in its place among the families.
func TestHistogram(t *testing.T) {
	m := &collector.Metric{
		Name: "accel_device_recovery_seconds", Help: "Help.", Kind: collector.Histogram,
		Labels: []string{"region"}, Buckets: []float64{1, 10}, From: []string{"test"},
	}
	d := collector.NewDistribution(m, "GPU-a", `x"y`)
	s := &collector.Snapshot{Devices: []collector.Device{device("GPU-a", "", 40, 1)}}
	publish := func() {
		c := d.Clone()
		s = &collector.Snapshot{Devices: s.Devices, Distributions: []collector.Distribution{c}}
	}
	publish()
	own := ownRegistry()
	e := exposition.New(func() *collector.Snapshot { return s }, own, exposition.Options{})
	for _, step := range []struct {
		observe float64
		want    string
	}{
		{0.5, `bucket{device="GPU-a",region="x\"y",le="1"} 1
accel_device_recovery_seconds_bucket{device="GPU-a",region="x\"y",le="10"} 1
accel_device_recovery_seconds_bucket{device="GPU-a",region="x\"y",le="+Inf"} 1
accel_device_recovery_seconds_sum{device="GPU-a",region="x\"y"} 0.5
accel_device_recovery_seconds_count{device="GPU-a",region="x\"y"} 1
`},
		{100, `le="+Inf"} 2
accel_device_recovery_seconds_sum{device="GPU-a",region="x\"y"} 100.5
`},
		{10, `le="10"} 2
`},
		{-1, `le="+Inf"} 3
`},
	} {
		d.Observe(step.observe)
		publish()
		_, _, page := get(t, e)
		if !strings.Contains(page, step.want) || !strings.Contains(page, "# TYPE accel_device_recovery_seconds histogram\n") {
			t.Errorf("after %v the page lacks %q:\n%s", step.observe, step.want, page)
		}
		families, err := e.Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, f := range families {
			if i > 0 && families[i-1].GetName() >= f.GetName() {
				t.Errorf("%s follows %s", f.GetName(), families[i-1].GetName())
			}
			if f.GetName() == m.Name {
				found += len(f.Metric)
			}
		}
		if found != 1 {
			t.Errorf("the Gatherer has %d series", found)
		}
	}
	e.Apply(exposition.Settings{Drop: func(name string) bool { return name == m.Name }})
	if _, _, page := get(t, e); strings.Contains(page, m.Name) {
		t.Error("served although dropped")
	}
}
