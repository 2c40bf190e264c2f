package differential

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestGenerated: rules from a grammar over series that come, go, reset, repeat
// and collide with the labels of the target.
func TestGenerated(t *testing.T) {
	fired, failed, alerts, steps := 0, 0, 0, 0
	for i := range uint64(*cases) {
		t.Run(fmt.Sprint("seed=", *seed+i), func(t *testing.T) {
			p, g := playGenerated(t, *seed+i)
			fired, failed, alerts, steps = fired+len(p.fired), failed+len(p.failed), alerts+len(g.alerts), steps+p.steps
		})
	}
	t.Logf("%d steps; of %d alerts %d fired; %d rules failed", steps, alerts, fired, failed)
	if *cases >= 100 && (fired < alerts/5 || failed == 0) {
		t.Error("the generated rules produce too few alerts and series")
	}
}

func playGenerated(t *testing.T, seed uint64) (*pair, *grammar) {
	r := random(seed)
	g := newGrammar(r)
	o := options{
		rules: g.file(), interval: oneOf(r, 15*time.Second, 15*time.Second, 10*time.Second, time.Minute), resend: oneOf(r, time.Minute, 20*time.Second, 3*time.Minute),
		target:      map[string]string{"job": "accel-exporter", "instance": "n1"},
		external:    map[string]string{"cluster": "c1"},
		externalURL: "http://n1:9400",
	}
	p := newPair(t, o)
	e := newExporter(r)
	at := time.UnixMilli(1_800_000_000_000 + r.Int64N(60_000)).UTC()
	for range 60 + r.IntN(120) {
		p.step(at, e.page(), !chance(r, 2))
		at = at.Add(pause(r, o.interval))
	}
	return p, g
}

// pause is the time to the next step: mostly the interval, sometimes less, as
// after an event, or more.
func pause(r *rand.Rand, interval time.Duration) time.Duration {
	switch n := r.IntN(100); {
	case n < 85:
		return interval
	case n < 93:
		return time.Duration(1+r.Int64N(interval.Milliseconds())) * time.Millisecond
	case n < 99:
		return interval * time.Duration(2+r.IntN(5))
	}
	return 20 * time.Minute
}
