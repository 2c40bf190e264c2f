package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestHiddenSeries: rules see a series that the page hides while it is 0, also when its
// samples have been forgotten.
func TestHiddenSeries(t *testing.T) {
	var now *collector.Snapshot
	page := exposition.New(func() *collector.Snapshot { return now }, nil, exposition.Options{})
	page.Apply(exposition.Settings{Standard: true})
	w := newWorld(t, group("- {alert: Xid, expr: accel_gpu_xid_errors_total > 0}"), func(o *engine.Options) { o.Page = page })
	at := time.Duration(0)
	for _, xids := range []float64{0, 1, 0, 2} {
		d := collector.Device{ID: "GPU-a"}
		d.Set(collector.XidErrors, xids, "79")
		now = &collector.Snapshot{Devices: []collector.Device{d}}
		for range 20 {
			w.at(at)
			at += time.Minute
		}
		var want []string
		if xids > 0 {
			want = []string{"firing Xid device=GPU-a xid=79"}
		}
		if diff := cmp.Diff(want, w.alerts()); diff != "" {
			t.Errorf("with %v Xids (-want +got):\n%s", xids, diff)
		}
	}
}
