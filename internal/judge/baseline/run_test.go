package baseline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

// TestStale: after a value changes, the series with the old value ends.
func TestStale(t *testing.T) {
	j := baseline.New(parse(t, fleet), baseline.Options{})
	for _, step := range []struct {
		version string
		devices []collector.Device
		want    []string
	}{
		{"580.95.05", []collector.Device{h100("A"), h100("B")}, nil},
		{"590.1", []collector.Device{h100("A"), h100("B")}, []string{"A driver", "B driver"}},
		{"590.1", []collector.Device{h100("B")}, []string{"B driver"}},
		{"580.105.3", []collector.Device{h100("A", info(collector.FirmwareInfo, "inforom", "x")), h100("B")}, []string{"A inforom"}},
		{"580.105.3", []collector.Device{h100("A", info(collector.FirmwareInfo, "inforom", "G520.0200.00.05")), h100("B")}, nil},
	} {
		for range 2 { // an equal second Snapshot has the same result
			s := snapshot([]collector.Reading{driver(step.version, "13.0")}, step.devices...)
			j.Judge(s)
			var got []string
			for _, d := range s.Devices {
				for _, r := range d.Readings {
					if r.Metric == collector.Drift && r.Value == 1 && r.Labels[0] != "mig" {
						got = append(got, d.ID+" "+r.Labels[0])
					}
				}
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("driver %s: drift (-want +got):\n%s", step.version, diff)
			}
		}
	}
}
