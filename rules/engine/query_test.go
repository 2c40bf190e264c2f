package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRepeated: a rule yields at each evaluation what its expression yields then.
func TestRepeated(t *testing.T) {
	exprs := []string{
		"temp", "temp offset 1m", "temp @ end()", "-temp", "(temp) * 2", "time()", "vector(time())",
		"max_over_time(temp[90s])", "max_over_time(temp[2m:30s])", "max_over_time(max_over_time(temp[1m:30s])[2m:1m] offset 1m)",
		"sum by (zone, device, nothing) (temp)", "topk(1, temp)", "quantile(0.5, temp)", `count_values by (zone, device) ("v", temp)`,
		"temp > on (device) group_left (zone) min by (device, zone) (last_over_time(temp[3m:]))", `label_replace(temp, "a", "$1", "zone", "(.*)")`,
	}
	var rules strings.Builder
	for i, expr := range exprs {
		fmt.Fprintf(&rules, "- {record: 'r%d', expr: '%s'}\n", i, expr)
	}
	w := newWorld(t, group(rules.String()))
	for tick := range 8 {
		page := []string{fmt.Sprintf(`temp{device="a",zone="z"} %d`, 40+tick%5), fmt.Sprintf(`temp{device="b",zone="y"} %d`, 70-tick)}
		if tick > 4 {
			page = append(page, `temp{device="c",zone="y"} 90`)
		}
		w.set(page...)
		w.at(time.Duration(tick) * 30 * time.Second)
		for i, expr := range exprs {
			if diff := cmp.Diff(w.values(expr), w.values(fmt.Sprintf("r%d", i))); diff != "" {
				t.Fatalf("tick %d: %s (-now +rule):\n%s", tick, expr, diff)
			}
		}
	}
}

// values returns the values that an expression yields.
func (w *world) values(expr string) []string {
	w.t.Helper()
	all := w.query(expr)
	for i, s := range all {
		all[i] = s[strings.LastIndex(s, " ")+1:]
	}
	slices.Sort(all)
	return all
}
