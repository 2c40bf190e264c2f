package exposition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

func TestDropped(t *testing.T) {
	up := func(v float64, labels ...string) collector.Reading {
		return collector.Reading{Metric: collector.DeviceUp, Labels: labels, Value: v}
	}
	for _, c := range []struct {
		name string
		s    collector.Snapshot
		want []string
	}{
		{
			name: "the first of equal series stays",
			s: collector.Snapshot{Devices: []collector.Device{
				{ID: "a", Readings: []collector.Reading{up(1, ""), up(0, "")}},
				{ID: "a", Readings: []collector.Reading{up(0, "")}},
			}},
			want: []string{
				`accel_device_up{device="a",reason=""} 1`,
				`accel_exporter_series_dropped_total{reason="duplicate"} 2`,
				`accel_exporter_series_dropped_total{reason="invalid"} 0`,
				`accel_exporter_series_dropped_total{reason="panic"} 0`,
			},
		},
		{
			name: "what does not fit its family",
			s: collector.Snapshot{
				Devices: []collector.Device{{ID: "a", Readings: []collector.Reading{
					{},
					up(1), up(1, "x", "y"), up(1, "\xff"),
					{Metric: &collector.Metric{Name: "accel_device_up", Labels: []string{"reason"}}, Labels: []string{"z"}},
					{Metric: &collector.Metric{Name: "with space"}},
					{Metric: &collector.Metric{Name: "reserved", Labels: []string{"__name__"}}, Labels: []string{"z"}},
					{Metric: &collector.Metric{Name: "twice", Labels: []string{"device"}}, Labels: []string{"z"}},
					{Metric: exposition.Metrics()[0], Labels: []string{"limit"}, Value: 7},
				}}},
				Node:   []collector.Reading{up(1, "")},
				Panics: []string{"a judge"},
			},
			want: []string{
				`accel_device_up{device="a",reason="` + "\uFFFD" + `"} 1`,
				`accel_exporter_series_dropped_total{reason="duplicate"} 0`,
				`accel_exporter_series_dropped_total{reason="invalid"} 9`,
				`accel_exporter_series_dropped_total{reason="panic"} 1`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := exposition.New(fixed(&c.s), nil, exposition.Options{})
			if d := cmp.Diff(c.want, samples(t, e)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// A snapshot that several clients scrape is counted once, the next one again.
func TestDroppedIsPerSnapshot(t *testing.T) {
	r := collector.Reading{Metric: collector.DeviceUp, Labels: []string{""}}
	s := &collector.Snapshot{Devices: []collector.Device{{ID: "a", Readings: []collector.Reading{r, r}}}}
	e := exposition.New(func() *collector.Snapshot { return s }, nil, exposition.Options{})
	for _, want := range []string{"1", "1", "2"} {
		if want == "2" {
			s = &collector.Snapshot{Devices: s.Devices}
		}
		_, _, page := get(t, e)
		if line := `accel_exporter_series_dropped_total{reason="duplicate"} ` + want + "\n"; !strings.Contains(page, line) {
			t.Errorf("no %q in\n%s", line, page)
		}
	}
}
