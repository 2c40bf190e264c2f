package health_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// start is the start of the exporter in every test case.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	gpuID = "GPU-1"
	gpuAt = "0000:1b:00.0"
)

// fact changes the state of a device in one Snapshot.
type fact func(d *collector.Device)

// up makes the device answer, which is the default.
func up(d *collector.Device) { d.SetBool(collector.DeviceUp, true, "") }

// down makes the device fail with a reason.
func down(reason string) fact {
	return func(d *collector.Device) {
		d.Down = reason
		d.Sampled = time.Time{}
		d.Readings = slices.DeleteFunc(d.Readings, func(r collector.Reading) bool { return r.Metric == collector.DeviceUp })
		d.SetBool(collector.DeviceUp, false, reason)
	}
}

// unseen makes the source of the device fail.
func unseen(d *collector.Device) { d.Readings, d.Sampled = nil, time.Time{} }

func set(m *collector.Metric, v float64, labels ...string) fact {
	return func(d *collector.Device) { d.Set(m, v, labels...) }
}

// family is set for a metric by name.
func family(name string, v float64, labels ...string) fact {
	for _, m := range collector.Table() {
		if m.Name == name {
			return set(m, v, labels...)
		}
	}
	panic("no family " + name)
}

// driver sets the recovery action that the driver reports.
func driver(action string) fact {
	return func(d *collector.Device) {
		for _, a := range []string{"none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot", "other"} {
			d.SetBool(collector.RecoveryAction, a == action, a)
		}
	}
}

func xid(code uint64, more ...func(*collector.Event)) collector.Event {
	e := collector.Event{Source: "nvidia", Device: gpuID, Kind: collector.EventXid, Code: code}
	for _, f := range more {
		f(&e)
	}
	return e
}

func event(kind collector.EventKind, more ...func(*collector.Event)) collector.Event {
	e := xid(0, more...)
	e.Kind = kind
	return e
}

func sub(s string) func(*collector.Event)     { return func(e *collector.Event) { e.Sub = s } }
func cause(c uint64) func(*collector.Event)   { return func(e *collector.Event) { e.Cause = c } }
func asks(a string) func(*collector.Event)    { return func(e *collector.Event) { e.Action = a } }
func of(device string) func(*collector.Event) { return func(e *collector.Event) { e.Device = device } }

// past makes an event a log entry from before the start of the exporter.
func past(before time.Duration) func(*collector.Event) {
	return func(e *collector.Event) { e.Past, e.Time, e.Source = true, start.Add(-before), "kernellog" }
}

// earlier sets the time of an event relative to its Snapshot.
func earlier(d time.Duration) func(*collector.Event) {
	return func(e *collector.Event) { e.Time = time.Time{}.Add(d) }
}

// again makes an event the second report of a fault.
func again(e *collector.Event) {
	e.Source, e.Witnesses = "kernellog", []string{"nvidia", "kernellog"}
}

// step is one Snapshot, after the previous one by after.
type step struct {
	after time.Duration
	log   bool // the kernel log is read
	facts []fact
	news  []collector.Event
	// want is state, action and reasons.
	want  string
	again time.Duration // Snapshot.Again after the Snapshot, 0 if it is not set
}

// history is a sequence of events and readings of one GPU.
type history struct {
	name  string
	steps []step
}

// gpu is the device of the test cases.
func gpu(now time.Time, facts ...fact) collector.Device {
	d := collector.Device{ID: gpuID, Class: collector.GPU, Vendor: "nvidia", PCI: gpuAt, Sampled: now}
	up(&d)
	for _, f := range facts {
		f(&d)
	}
	return d
}

// snapshot returns a Snapshot. Events without a time get the time now.
func snapshot(now time.Time, news []collector.Event, devices ...collector.Device) *collector.Snapshot {
	s := &collector.Snapshot{Time: now, Devices: devices, News: slices.Clone(news)}
	for i := range s.News {
		switch e := &s.News[i]; {
		case e.Time.IsZero():
			e.Time = now
		case e.Time.Year() < 2: // earlier
			e.Time = now.Add(-e.Time.Sub(time.Time{}))
		}
	}
	return s
}

// verdict returns state, action and reasons in the form of step.want.
func verdict(d *collector.Device) string {
	out := []string{d.Verdict.State, d.Verdict.Action}
	for _, r := range d.Verdict.Reasons {
		out = append(out, r.Code)
	}
	return strings.Join(out, " ")
}

// play runs a test case with a new Judge, on a node with another GPU.
func play(t *testing.T, s history) {
	t.Helper()
	j := health.New(health.Builtin(), health.Options{})
	now := start
	for i, st := range s.steps {
		now = now.Add(st.after)
		snap := snapshot(now, st.news, gpu(now, st.facts...), collector.Device{ID: "GPU-2", Class: collector.GPU, Vendor: "nvidia"})
		snap.Sources = []collector.Status{{Source: "nvidia", Up: true}, {Source: "kernellog", Up: st.log}}
		j.Judge(snap)
		if got := verdict(&snap.Devices[0]); got != st.want {
			t.Errorf("step %d, after %v:\n got %s\nwant %s", i, now.Sub(start), got, st.want)
		}
		var again time.Duration
		if !snap.Again.IsZero() {
			again = snap.Again.Sub(now)
		}
		if again != st.again {
			t.Errorf("step %d: again after %v, want %v", i, again, st.again)
		}
		consistent(t, snap)
	}
}

// consistent checks invariants of every judged Snapshot.
func consistent(t *testing.T, s *collector.Snapshot) {
	t.Helper()
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Verdict == nil {
			t.Fatalf("%s has no verdict", d.ID)
		}
		for m, want := range map[*collector.Metric]string{collector.DeviceHealth: d.Verdict.State, collector.DeviceAction: d.Verdict.Action} {
			if m == collector.DeviceAction && d.Parent != "" {
				continue // the action is at the parent
			}
			var set []string
			for _, r := range d.Readings {
				if r.Metric == m && r.Value == 1 {
					set = append(set, r.Labels[0])
				}
			}
			if len(set) != 1 || set[0] != want {
				t.Errorf("%s: %s has %q at 1, the verdict is %s", d.ID, m.Name, set, want)
			}
		}
		worst := "healthy"
		seen := map[string]bool{}
		for _, r := range d.Verdict.Reasons {
			if seen[r.Code] || r.Text == "" || r.Since.IsZero() || r.Severity == "none" || r.Severity == "" {
				t.Errorf("%s: reason %+v", d.ID, r)
			}
			seen[r.Code] = true
			if worse(r.Severity, worst) {
				worst = r.Severity
			}
		}
		if worst != d.Verdict.State {
			t.Errorf("%s is %s, its reasons require %s", d.ID, d.Verdict.State, worst)
		}
	}
}

// worse orders states. An unknown device that had failed is still failed; a device
// that was degraded can be worse.
func worse(a, b string) bool {
	order := []string{"healthy", "degraded", "unknown", "failed"}
	return slices.Index(order, a) > slices.Index(order, b)
}
