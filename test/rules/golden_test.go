package differential

import (
	"strings"
	"testing"
	"time"
)

// TestGolden: the rules of a node over the pages of simulated machines, to
// which things happen for hours: values rise, devices go, counters and the
// exporter start again, and what the rules look for comes and goes.
func TestGolden(t *testing.T) {
	for name, pages := range map[string][]string{
		"h100":       {"h100-8.metrics", "h100-8.pods.metrics"},
		"mixed-node": {"mixed-node.metrics", "mixed-node.pods.metrics"},
		"one-lost":   {"one-lost.metrics"},
		"a100":       {"a100.metrics"},
		"garbage":    {"garbage.metrics"},
		"no-driver":  {"no-driver.metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			text := readRules(t, ofNode, "../../rules/*.yaml")
			p := newPair(t, options{
				rules: text, interval: 30 * time.Second,
				target:      map[string]string{"job": "accel-exporter", "instance": "n1", "node": "n1"},
				external:    map[string]string{"cluster": "c1"},
				externalURL: "http://n1:9400",
			})
			n := newNode(random(*seed), golden(t, pages...), selectorsOf(t, text))
			start := time.Unix(1_800_000_000, 0).UTC()
			for at := start; at.Sub(start) < time.Duration(*hours*float64(time.Hour)); at = at.Add(30 * time.Second) {
				page, up := n.page(at)
				p.mustStep(at, page, up)
			}
			var fired []string
			for name := range p.fired {
				fired = append(fired, name)
			}
			t.Logf("%d steps; fired: %d: %s; failed: %d", p.steps, len(fired), strings.Join(fired, ", "), len(p.failed))
		})
	}
}
