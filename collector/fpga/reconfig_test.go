package fpga

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
)

// TestReconfigurations: the signs of a load, by state, by EBUSY, by identity,
// in any possible order, are counted once and emitted.
func TestReconfigurations(t *testing.T) {
	const a, b = "aaaa", "bbbb"
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	type step func(g *region)
	state := func(s float64, text string) step { return func(g *region) { g.setState(at(s), text) } }
	busy := func(s float64, is bool) step {
		return func(g *region) {
			g.setBusy(at(s), is)
			if is {
				g.settle(at(s), at(s), "", false)
			}
		}
	}
	id := func(s float64, text string) step {
		return func(g *region) { g.setBusy(at(s), false); g.settle(at(s), at(s), text, true) }
	}
	slow := func(from, to float64, text string) step {
		return func(g *region) { g.settle(at(from), at(to), text, true) }
	}
	none := func(s float64) step { return func(g *region) { g.settle(at(s), at(s), "", false) } }
	for name, c := range map[string]struct {
		steps      []step
		ok, failed uint64
		events     []string
	}{
		"idle":                    {steps: []step{state(0, "unknown"), id(0, a), state(1, "unknown"), id(1, a)}},
		"state and identity":      {steps: []step{state(0, "unknown"), id(0, a), state(1, "write init"), state(1.5, "write"), state(3, "operating"), id(3.5, b), id(4, b)}, ok: 1, events: []string{"port0: ok, loaded bbbb"}},
		"identity before":         {steps: []step{state(0, "unknown"), id(0, a), state(1, "write"), slow(2, 2.5, a), state(3, "operating"), id(4, b)}, ok: 1, events: []string{"port0: ok, loaded bbbb"}},
		"same image":              {steps: []step{state(0, "operating"), id(0, a), state(1, "write"), state(2, "operating"), id(3, a)}, ok: 1, events: []string{"port0: ok, loaded aaaa"}},
		"no identity":             {steps: []step{state(0, "operating"), none(0), state(1, "write"), none(1.5), state(2, "operating"), none(2.5)}, ok: 1, events: []string{"port0: ok"}},
		"failed":                  {steps: []step{state(0, "unknown"), id(0, a), state(1, "write"), busy(2, true), state(3, "write error"), busy(3.5, true), busy(9, true)}, failed: 1, events: []string{"port0: failed"}},
		"failed, mended":          {steps: []step{state(0, "unknown"), id(0, a), state(1, "write"), state(2, "write error"), busy(3, true), state(4, "write"), state(6, "operating"), busy(6, true), id(7, b)}, ok: 1, failed: 1, events: []string{"port0: failed", "port0: ok, loaded bbbb"}},
		"too fast to be observed": {steps: []step{state(0, "unknown"), id(0, a), state(1, "operating"), id(2, b), id(3, b)}, ok: 1, events: []string{"port0: ok, loaded bbbb"}},
		"too fast, failed":        {steps: []step{state(0, "unknown"), none(0), state(1, "firmware request error"), none(1)}, failed: 1, events: []string{"port0: failed"}},
		"identity alone":          {steps: []step{id(0, a), id(1, b), id(2, a)}, ok: 2, events: []string{"port0: ok, loaded bbbb", "port0: ok, loaded aaaa"}},
		"read blocked":            {steps: []step{id(0, a), slow(1, 4, b)}, ok: 1, events: []string{"port0: ok, loaded bbbb"}},
		"port reset":              {steps: []step{id(0, a), busy(1, true), id(2, a)}},
		"busy, changed":           {steps: []step{id(0, a), busy(1, true), busy(2, true), id(4, b)}, ok: 1, events: []string{"port0: ok, loaded bbbb"}},
		"started in the middle": {steps: []step{
			state(0, "write"), state(2, "operating"), id(3, b),
		}, ok: 1, events: []string{"port0: ok, loaded bbbb"}},
		"driver bound again": {steps: []step{state(0, "operating"), id(0, a), state(1, "unknown"), id(1, a)}},
		"new kernel's word":  {steps: []step{state(0, "operating"), none(0), state(1, "meditating"), none(1)}},
		"identity never comes": {steps: []step{
			state(0, "operating"), id(0, a), state(1, "write"), state(2, "operating"), none(3), none(100),
		}, ok: 1, events: []string{"port0: ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			var events []string
			m := newMemory("card", func(e collector.Event) {
				events = append(events, e.Detail)
				if e.Device != "card" || e.Source != Name || e.Kind != collector.EventReconfiguration || (e.Code != 0) != strings.Contains(e.Detail, "failed") {
					t.Errorf("event %+v", e)
				}
			})
			g := m.region("port0")
			for _, s := range c.steps {
				s(g)
			}
			var d collector.Device
			m.readings(&d)
			want := []collector.Reading{
				{Metric: collector.FPGAReconfigurations, Labels: []string{"port0", "ok"}, Value: float64(c.ok)},
				{Metric: collector.FPGAReconfigurations, Labels: []string{"port0", "failed"}, Value: float64(c.failed)},
			}
			if diff := cmp.Diff(want, d.Readings, cmp.Comparer(func(a, b *collector.Metric) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzReconfigurations: whatever a driver shows, nothing is counted that did
// not happen: no more than there were changes of anything.
func FuzzReconfigurations(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 9, 14, 20, 21})
	f.Add([]byte("write, error, busy, write"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		events := 0
		m := newMemory("card", func(collector.Event) { events++ })
		g := m.region("port0")
		now := time.Unix(1000, 0)
		changes, last := 0, byte(0)
		for _, s := range steps {
			now = now.Add(time.Second)
			if s != last {
				changes++
			}
			last = s
			switch n := int(s) % (len(managerStates) + 4); {
			case n < len(managerStates):
				g.setState(now, managerStates[n])
			case n == len(managerStates):
				g.setBusy(now, true)
				g.settle(now, now, "", false)
			default:
				g.setBusy(now, false)
				g.settle(now.Add(-time.Second), now, string(rune('a'+n-len(managerStates))), true)
			}
		}
		g.settle(now, now.Add(2*identityGrace), "", false)
		if total := g.total(); int(total) > changes || int(total) != events {
			t.Errorf("%d counted and %d emitted, of %d changes", total, events, changes)
		}
	})
}
