package exposition_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// ownRegistry has the exporter's own families, before, between and after the
// snapshot's by name.
func ownRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	for _, name := range []string{"aaa_first", "accel_config_info", "zzz_last"} {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "Help."})
		g.Set(1)
		reg.MustRegister(g)
	}
	return reg
}

// TestNoSnapshot: before the first Snapshot the page has the exporter's own families.
func TestNoSnapshot(t *testing.T) {
	e := exposition.New(fixed(nil), ownRegistry(), exposition.Options{})
	if lines := samples(t, e); len(lines) != 6 || lines[0] != "aaa_first 1" {
		t.Errorf("%q", lines)
	}
}

// TestStandard: of sets of states the state in force is served, zero counters are
// not, other zeros are; a device that needs attention has everything.
func TestStandard(t *testing.T) {
	// gpu returns a GPU whose action, Xid and NVLink have these values.
	gpu := func(attention bool, action, xid, link float64) *collector.Snapshot {
		d := collector.Device{ID: "GPU-1", Attention: attention}
		d.Set(collector.DeviceAction, 1-action, "none")
		d.Set(collector.DeviceAction, action, "reset")
		d.Set(collector.XidErrors, xid, "79")
		d.Set(collector.NVLinkUp, link, "0")
		d.Set(collector.ActivityRatio, 0, "sm")
		d.Set(collector.ActivityRatio, 0, "fp64")
		return &collector.Snapshot{Devices: []collector.Device{d}}
	}
	const (
		sm, fp64    = `accel_activity_ratio{device="GPU-1",unit="sm"} 0`, `accel_activity_ratio{device="GPU-1",unit="fp64"} 0`
		none, reset = `accel_device_action{action="none",device="GPU-1"} `, `accel_device_action{action="reset",device="GPU-1"} `
		xid, link   = `accel_gpu_xid_errors_total{device="GPU-1",xid="79"} `, `accel_nvlink_up{device="GPU-1",link="0"} `
	)
	var now *collector.Snapshot
	e := exposition.New(func() *collector.Snapshot { return now }, nil, exposition.Options{})
	e.Apply(exposition.Settings{Standard: true})
	for _, c := range []struct {
		name string
		now  *collector.Snapshot
		want []string
	}{
		{"healthy", gpu(false, 0, 0, 1), []string{sm, none + "1"}},
		{"another state, an Xid", gpu(false, 1, 3, 1), []string{sm, reset + "1", xid + "3"}},
		{"back", gpu(false, 0, 3, 1), []string{sm, none + "1", xid + "3"}},
		{"ill", gpu(true, 1, 0, 0), []string{fp64, sm, none + "0", reset + "1", xid + "0", link + "0"}},
	} {
		now = c.now
		got := slices.DeleteFunc(samples(t, e), func(l string) bool { return strings.HasPrefix(l, "accel_exporter") })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if _, _, page := get(t, e); c.name == "healthy" && strings.Contains(page, "xid") {
			t.Errorf("a family without series has a head:\n%s", page)
		}
	}
}
