package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestIsolation: a rule that panics, runs too long or reads too many samples loses
// only its evaluations. Its alerts keep their state, other rules are evaluated, and
// it recovers when the cause is gone.
func TestIsolation(t *testing.T) {
	const healthy = "temp{device=\"a\"} 1\n"
	many := healthy
	for i := range 100 {
		many += fmt.Sprintf("temp{device=\"a\",sensor=\"%d\"} 1\n", i)
	}
	for name, c := range map[string]struct {
		before func(context.Context) // the failing evaluations
		page   string                // while they fail
		want   string                // in the error
	}{
		"panic":   {func(context.Context) { panic("index out of range") }, healthy, "panic: index out of range"},
		"time":    {func(ctx context.Context) { <-ctx.Done() }, healthy, "timed out"},
		"samples": {func(context.Context) {}, many, "too many samples"},
	} {
		t.Run(name, func(t *testing.T) {
			// A slow machine causes no timeout in a synctest bubble.
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, group(`
- alert: Bad
  expr: count by (device) (temp > 0) > 0
- alert: Good
  expr: good == 1
`), func(o *engine.Options) { o.Limits.Samples = 20 })
				step := 0
				at := func(page string, want ...string) {
					t.Helper()
					w.set(page)
					w.at(time.Duration(step) * time.Minute)
					step++
					if diff := cmp.Diff(want, w.alerts()); diff != "" {
						t.Errorf("step %d (-want +got):\n%s", step, diff)
					}
				}
				at(healthy+"good 1", "firing Bad device=a", "firing Good")
				failing := true
				w.Before(func(ctx context.Context, rule string) {
					if rule == "Bad" && failing {
						c.before(ctx)
					}
				})
				for range 2 {
					at(c.page+"good 0", "firing Bad device=a", "resolved Good")
					at(c.page+"good 1", "firing Bad device=a", "firing Good")
				}
				if r := w.rule("Bad"); r.Health != engine.HealthError || !strings.Contains(r.LastError, c.want) {
					t.Errorf("health %s, %q", r.Health, r.LastError)
				}
				failing = false
				at("good 1", "resolved Bad device=a", "firing Good")
				if log := w.log.String(); strings.Count(log, "Rule evaluation fails") != 1 || strings.Count(log, "Rule evaluation works again") != 1 {
					t.Errorf("the failure is not logged once at its start and once at its end:\n%s", log)
				}
			})
		})
	}
}
