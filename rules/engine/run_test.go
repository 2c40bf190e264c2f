package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// start runs the engine until the test ends.
func (w *world) run(t *testing.T) {
	done := make(chan struct{})
	ctx := t.Context()
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() { <-done })
}

// TestEvent: a fault whose pod dies a second later is told within a second,
// and names that pod, also when the pod is gone.
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
		// A second later the pod is gone; the exporter remembers whom the fault
		// hit.
		time.Sleep(time.Second)
		w.set(`health_reason{device="a",severity="failed"} 1`, `fault_timestamp_seconds{device="a",namespace="team",pod="job"} 1`)
		time.Sleep(10 * time.Minute)
		alerts := w.Alerts()
		if len(alerts) != 1 || alerts[0].Annotations["hit"] != "team/job" {
			t.Errorf("ten minutes later: %+v", alerts)
		}
	})
}

// TestShortEvent: what is on the page for less than an interval raises an
// alert, if an event says so.
func TestShortEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, group("- alert: Xid\n  expr: increase(xids_total[10m]) > 0"))
		w.set("xids_total 0")
		w.run(t)
		time.Sleep(20 * time.Second)
		w.set("xids_total 1")
		w.Trigger()
		synctest.Wait()
		if diff := cmp.Diff([]string{"firing Xid"}, w.take()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// counting counts what is gathered.
type counting struct {
	*world
	n     atomic.Int64
	takes time.Duration // to gather
}

func (c *counting) read(p *exposition.Page) (bool, error) {
	c.n.Add(1)
	time.Sleep(c.takes)
	return c.world.read(p)
}

// TestWitnesses: what tells of one fault again a moment later waits for
// nothing, also when another fault follows.
func TestWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, group("- {alert: Many, expr: n > 0, labels: {n: '{{ $value }}'}}"), func(o *engine.Options) { o.Interval = time.Hour })
		w.set("n 0")
		w.run(t)
		synctest.Wait()
		told := func(n int) {
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
				told(1 + 4*fault + witness)
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// TestStorm: events that come all the time cost a few evaluations at once,
// then one a second, and the last is heard.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(counting)
		w := newWorld(t, group("- alert: Many\n  expr: n > 5998"), func(o *engine.Options) { o.Read, o.Interval = c.read, time.Hour })
		c.world = w
		w.set("n 0")
		w.run(t)
		synctest.Wait()
		begun := c.n.Load()
		for i := range 6000 {
			w.set(fmt.Sprintf("n %d", i))
			w.Trigger()
			time.Sleep(10 * time.Millisecond)
		}
		if n := c.n.Load() - begun; n < 60 || n > 64 {
			t.Errorf("%d evaluations in a minute; want one a second, and four at once", n)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"firing Many"}, w.alerts()); diff != "" {
			t.Errorf("the last event was not heard (-want +got):\n%s", diff)
		}
	})
}

// TestSlowStorm: where an evaluation takes long, a storm has one each two
// seconds.
func TestSlowStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{takes: 400 * time.Millisecond}
		w := newWorld(t, group("- alert: Many\n  expr: n > 5"), func(o *engine.Options) { o.Read, o.Interval = c.read, time.Hour })
		c.world = w
		w.set("n 0")
		w.run(t)
		time.Sleep(time.Second)
		begun := c.n.Load()
		for range 600 {
			w.Trigger()
			time.Sleep(100 * time.Millisecond)
		}
		if n := c.n.Load() - begun; n < 30 || n > 33 {
			t.Errorf("%d evaluations of 0.4 s in a minute; want one each two seconds", n)
		}
		time.Sleep(5 * time.Second) // the last ends
	})
}

// TestTicks: the page is gathered at each interval, groups with intervals of
// their own are evaluated at theirs.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(counting)
		w := newWorld(t, "groups: [{name: fast, interval: 5s, rules: [{record: f, expr: temp}]}, {name: slow, interval: 1m, rules: [{record: s, expr: temp}]}]",
			func(o *engine.Options) { o.Read = c.read })
		c.world = w
		w.set("temp 1")
		w.run(t)
		time.Sleep(time.Minute + time.Second)
		var last []time.Time
		for _, g := range w.Groups() {
			last = append(last, g.LastEvaluation)
		}
		if n := c.n.Load(); n != 13 {
			t.Errorf("%d evaluations in a minute, want one each 5 s", n)
		}
		if !last[0].Equal(last[1]) {
			t.Errorf("last evaluations: %v", last)
		}
	})
}
