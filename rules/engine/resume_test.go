package engine_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestResume: an engine that takes another's place goes on with its alerts,
// and ends none for want of a memory.
func TestResume(t *testing.T) {
	text := group(`
- record: lost:10m
  expr: increase(lost_total[10m])
- alert: Hot
  expr: temp > 90
  for: 10m
- alert: Gone
  expr: temp > 10
- alert: Lost
  expr: lost:10m > 0
- alert: Waiting
  expr: temp > 50
  for: 2h
`)
	before := newWorld(t, text)
	for i, lost := range []string{"0", "0", "3", "3"} {
		before.set(`temp{device="a"} 95`, "# TYPE lost_total counter", `lost_total{device="a"} `+lost)
		before.at(time.Duration(i) * 4 * time.Minute)
	}
	data, err := json.Marshal(before.Standing())
	if err != nil {
		t.Fatal(err)
	}
	var standing engine.Standing
	if err := json.Unmarshal(data, &standing); err != nil {
		t.Fatal(err)
	}

	w := newWorld(t, text)
	start := 13 * time.Minute
	w.Resume(standing, w.start.Add(start))
	states := func(want ...string) {
		t.Helper()
		var got []string
		for _, a := range w.Alerts() {
			got = append(got, a.Labels["alertname"]+" "+string(a.State)+" "+a.ActiveAt.Sub(w.start).String())
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("after %v: %q, want %q", w.now.Sub(w.start), got, want)
		}
	}
	// What looks at the present ends with it; what looks back may not see far
	// enough yet.
	w.set(`temp{device="a"} 95`, "# TYPE lost_total counter", `lost_total{device="a"} 3`)
	w.at(start)
	states("Gone firing 0s", "Hot firing 0s", "Lost firing 8m0s", "Waiting pending 0s")
	w.set(`temp{device="a"} 5`, "# TYPE lost_total counter", `lost_total{device="a"} 3`)
	w.at(start + time.Minute)
	states("Gone inactive 0s", "Hot inactive 0s", "Lost firing 8m0s")
	w.at(start + 9*time.Minute)
	states("Gone inactive 0s", "Hot inactive 0s", "Lost firing 8m0s")
	w.at(start + 10*time.Minute)
	states("Gone inactive 0s", "Hot inactive 0s", "Lost inactive 8m0s")

	// An hour later nobody knows what has been meanwhile.
	late := newWorld(t, text)
	late.Resume(standing, late.start.Add(2*time.Hour))
	if alerts := late.Alerts(); len(alerts) != 0 {
		t.Errorf("alerts of two hours ago: %+v", alerts)
	}
}
