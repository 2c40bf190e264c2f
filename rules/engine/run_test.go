package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// run runs the engine until the test ends.
func (w *world) run(t *testing.T) {
	done := make(chan struct{})
	ctx := t.Context()
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() { <-done })
}

// TestEvent: a fault raises an alert at once. The alert names the pod that the fault
// hit, also after the pod has ended.
func TestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, group(`
- alert: GpuXidFatal
  expr: health_reason{severity="failed"} == 1
  keep_firing_for: 5m
  annotations:
    hit: '{{ range query (printf "fault_timestamp_seconds{device=%q}" $labels.device) }}{{ .Labels.namespace }}/{{ .Labels.pod }}{{ end }}'
`))
		w.set(`allocation_info{device="a",namespace="team",pod="job"} 1`)
		w.run(t)
		synctest.Wait()
		time.Sleep(5 * time.Second) // between two ticks
		w.set(`allocation_info{device="a",namespace="team",pod="job"} 1`, `health_reason{device="a",severity="failed"} 1`, `fault_timestamp_seconds{device="a",namespace="team",pod="job"} 1`)
		w.Trigger()
		synctest.Wait()
		if diff := cmp.Diff([]string{"firing GpuXidFatal device=a severity=failed"}, w.take()); diff != "" {
			t.Errorf("at once (-want +got):\n%s", diff)
		}
		// The pod ends a second later. The page still names the pod that the
		// fault hit.
		time.Sleep(time.Second)
		w.set(`health_reason{device="a",severity="failed"} 1`, `fault_timestamp_seconds{device="a",namespace="team",pod="job"} 1`)
		time.Sleep(10 * time.Minute)
		alerts := w.Alerts()
		if len(alerts) != 1 || alerts[0].Annotations["hit"] != "team/job" {
			t.Errorf("ten minutes later: %+v", alerts)
		}
	})
}

// counting counts the reads of the page.
type counting struct {
	*world
	n atomic.Int64
}

func (c *counting) Gather() ([]*dto.MetricFamily, error) {
	c.n.Add(1)
	return c.world.Gather()
}

// TestWitnesses: each of several reports of one fault triggers an evaluation at
// once, also when another fault follows.
func TestWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, group("- {alert: Many, expr: n > 0, labels: {n: '{{ $value }}'}}"), func(o *engine.Options) { o.Interval = time.Hour })
		w.set("n 0")
		w.run(t)
		synctest.Wait()
		report := func(n int) {
			t.Helper()
			w.set(fmt.Sprintf("n %d", n))
			w.Trigger()
			synctest.Wait()
			if got := w.take(); len(got) == 0 || got[0] != fmt.Sprintf("firing Many n=%d", n) && got[len(got)-1] != fmt.Sprintf("firing Many n=%d", n) {
				t.Errorf("witness %d: sent %q", n, got)
			}
		}
		for fault := range 3 {
			for witness := range 4 {
				report(1 + 4*fault + witness)
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// TestStorm: continuous events trigger a few evaluations at once, then one per second.
// The last event is evaluated.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(counting)
		w := newWorld(t, group("- alert: Many\n  expr: n > 5998"), func(o *engine.Options) { o.Page, o.Interval = c, time.Hour })
		c.world = w
		w.set("n 0")
		w.run(t)
		time.Sleep(time.Second)
		begun := c.n.Load()
		for i := range 6000 {
			w.set(fmt.Sprintf("n %d", i))
			w.Trigger()
			time.Sleep(10 * time.Millisecond)
		}
		if n := c.n.Load() - begun; n < 60 || n > 64 {
			t.Errorf("%d evaluations in a minute; want about 62", n)
		}
		time.Sleep(5 * time.Second) // the last ends
		if diff := cmp.Diff([]string{"firing Many"}, w.alerts()); diff != "" {
			t.Errorf("the last event was not evaluated (-want +got):\n%s", diff)
		}
	})
}

// TestTicks: the page is read when a group is due. Groups are evaluated at their
// intervals.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(counting)
		w := newWorld(t, "groups: [{name: fast, interval: 5s, rules: [{record: f, expr: temp}]}, {name: slow, interval: 1m, rules: [{record: s, expr: temp}]}]",
			func(o *engine.Options) { o.Page = c })
		c.world = w
		w.set("temp 1")
		w.run(t)
		time.Sleep(time.Minute + time.Second)
		var last []time.Time
		for _, g := range w.Groups() {
			last = append(last, g.LastEvaluation)
		}
		if n := c.n.Load(); n != 13 {
			t.Errorf("%d evaluations in a minute, want one every 5 s", n)
		}
		if !last[0].Equal(last[1]) {
			t.Errorf("last evaluations: %v", last)
		}
	})
}
