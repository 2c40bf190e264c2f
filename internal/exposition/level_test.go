package exposition_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// illness returns a GPU whose action, Xid and NVLink have these values.
func illness(attention bool, action, xid, link float64) *collector.Snapshot {
	d := collector.Device{ID: "GPU-1", Attention: attention}
	d.Set(collector.DeviceAction, 1-action, "none")
	d.Set(collector.DeviceAction, action, "reset")
	d.Set(collector.XidErrors, xid, "79")
	d.Set(collector.NVLinkUp, link, "0")
	d.Set(collector.ActivityRatio, 0, "sm")
	d.Set(collector.ActivityRatio, 0, "fp64")
	return &collector.Snapshot{Devices: []collector.Device{d}}
}

// TestStandard: of sets of states the state in force is served, zero counters are
// not, other zeros are; a device that needs attention has everything. What is served
// is what promhttp would serve, and what rules read.
func TestStandard(t *testing.T) {
	var now *collector.Snapshot
	e := exposition.New(func() *collector.Snapshot { return now }, nil, exposition.Options{})
	e.Apply(exposition.Settings{Standard: true})
	var page exposition.Page
	for _, c := range []struct {
		name string
		now  *collector.Snapshot
		want []string
	}{
		{"healthy", illness(false, 0, 0, 1), []string{"activity sm", "action none"}},
		{"another state, an Xid", illness(false, 1, 3, 1), []string{"activity sm", "action reset", "xid 79"}},
		{"back", illness(false, 0, 3, 1), []string{"activity sm", "action none", "xid 79"}},
		{"ill", illness(true, 1, 0, 0), []string{"activity fp64", "activity sm", "action none", "action reset", "xid 79", "link 0"}},
	} {
		now = c.now
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		var got []string
		heads := map[string]bool{}
		for line := range strings.Lines(w.Body.String()) {
			switch {
			case strings.HasPrefix(line, "# TYPE "):
				heads[strings.Fields(line)[2]] = true
			case strings.HasPrefix(line, "accel_activity"):
				got = append(got, "activity "+labelOf(line, "unit"))
			case strings.HasPrefix(line, "accel_device_action"):
				got = append(got, "action "+labelOf(line, "action"))
			case strings.HasPrefix(line, "accel_gpu_xid"):
				got = append(got, "xid "+labelOf(line, "xid"))
			case strings.HasPrefix(line, "accel_nvlink_up"):
				got = append(got, "link "+labelOf(line, "link"))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
		if heads["accel_gpu_xid_errors_total"] != strings.Contains(w.Body.String(), "accel_gpu_xid_errors_total{") {
			t.Errorf("%s: a family without series has a head", c.name)
		}
		want := httptest.NewRecorder()
		promhttp.HandlerFor(e.Gatherer(), promhttp.HandlerOpts{}).ServeHTTP(want, httptest.NewRequest("GET", "/metrics", nil))
		if diff := cmp.Diff(want.Body.String(), w.Body.String()); diff != "" {
			t.Errorf("%s: unlike promhttp:\n%s", c.name, diff)
		}
		if _, err := e.Read(&page); err != nil {
			t.Fatal(err)
		}
		present := 0
		for _, v := range page.Values {
			if !exposition.Absent(v) {
				present++
			}
		}
		if served := strings.Count(w.Body.String(), "\naccel_"); present != served {
			t.Errorf("%s: rules read %d series, %d are served", c.name, present, served)
		}
	}
}

func labelOf(line, name string) string {
	_, rest, _ := strings.Cut(line, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
