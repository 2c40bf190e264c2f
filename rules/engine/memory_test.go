package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// number returns the value of the only series that an expression yields.
func (w *world) number(expr string) float64 {
	w.t.Helper()
	got := w.query(expr)
	if len(got) != 1 {
		w.t.Fatalf("%s: %v", expr, got)
	}
	f, err := strconv.ParseFloat(got[0][strings.LastIndex(got[0], " ")+1:], 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// TestDays: over days, a series takes memory for each change of its value, and
// increases and extremes are exact.
func TestDays(t *testing.T) {
	// Ranges of days are expensive, so the rules are evaluated twice a day.
	w := newWorld(t, strings.Replace(group(`
- {record: a, expr: 'increase(rare_total[2d])'}
- {record: b, expr: 'max_over_time(rare_total[2d]) - min_over_time(rare_total[2d])'}
- {record: c, expr: 'count_over_time(rare_total[2d])'}
`), "rules:", "interval: 12h\n  rules:", 1))
	const day = 24 * 60 // in ticks of a minute
	for tick := range 3 * day {
		w.set("# TYPE rare_total counter", fmt.Sprintf("rare_total %d", tick/500))
		w.now = w.start.Add(time.Duration(tick) * time.Minute)
		w.Eval(t.Context(), w.now, tick == 3*day-1)
	}
	changed := float64((3*day-1)/500 - day/500)
	for expr, want := range map[string]float64{
		"a": changed * (2 * day) / (2*day - 1), // Prometheus extrapolates from one sample less
		"b": changed,
		"c": 2 * day,
	} {
		if got := w.number(expr); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", expr, got, want)
		}
	}
	if m := w.Report().Memory; m.Bytes > 500 {
		t.Errorf("a series that changed %v times in two days takes %d bytes", changed, m.Bytes)
	}
}

// TestForgotten: series that have ended are removed from memory.
func TestForgotten(t *testing.T) {
	w := newWorld(t, group("- record: r\n  expr: increase(x_total[5m]) or y"))
	for i := range 2000 {
		w.set(fmt.Sprintf(`x_total{pod="%d"} 1`, i), fmt.Sprintf(`y{pod="%d"} 1`, i))
		w.at(time.Duration(i) * 15 * time.Second)
	}
	if m := w.Report().Memory; m.Series > 200 || m.Bytes > 100<<10 {
		t.Errorf("%d series, %d bytes", m.Series, m.Bytes)
	}
}

// TestSeriesLimit: series beyond the limit are left out. This does not resolve alerts
// that read them.
func TestSeriesLimit(t *testing.T) {
	for name, text := range map[string]string{
		"read by the alert":       "- alert: Hot\n  expr: temp > 90",
		"read by recording rules": "- {record: hot, expr: temp > 90}\n- {record: hotter, expr: hot}\n- {alert: Hot, expr: hotter}",
	} {
		t.Run(name, func(t *testing.T) { seriesLimit(t, group(text)) })
	}
}

func seriesLimit(t *testing.T, text string) {
	w := newWorld(t, text, func(o *engine.Options) { o.Limits.Series = 20 })
	w.set(`temp{d="a"} 91`)
	w.at(0)
	if diff := cmp.Diff([]string{"firing Hot d=a"}, w.alerts()); diff != "" {
		t.Fatal(diff)
	}
	// The device is no longer on the page, and other series reach the limit.
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`temp{d="%d"} 1`, i))
	}
	w.set(lines...)
	w.at(time.Minute)
	if diff := cmp.Diff([]string{"firing Hot d=a"}, w.alerts()); diff != "" {
		t.Errorf("the limit resolved the alert (-want +got):\n%s", diff)
	}
	if m := w.Report().Memory; m.Series > 20 {
		t.Errorf("%d series", m.Series)
	}
	if log := w.log.String(); strings.Count(log, "memory") == 0 || !strings.Contains(log, "temp") {
		t.Errorf("the limit is not logged:\n%s", log)
	}
	// It resolves once the number of series is below the limit.
	w.set(`temp{d="b"} 1`)
	for i := range 40 {
		w.at(time.Duration(i+2) * time.Minute)
	}
	if got := w.alerts(); slices.Contains(got, "firing Hot d=a") {
		t.Errorf("fires below the limit: %v", got)
	}
}

// TestBytesLimit: beyond the limit the largest series lose samples first. Alerts that
// read them keep firing.
func TestBytesLimit(t *testing.T) {
	w := newWorld(t, group("- alert: Busy\n  expr: increase(busy_total[1d]) > 0\n- alert: Rare\n  expr: increase(rare_total[1d]) > 0"), func(o *engine.Options) { o.Limits.Bytes = 4 << 10 })
	for tick := range 2000 {
		busy := min(tick, 1500) // stops within a day
		w.set(fmt.Sprintf("busy_total %d", busy), fmt.Sprintf("noisy_total %d", tick), fmt.Sprintf("rare_total %d", min(tick, 1)))
		w.at(time.Duration(tick) * 15 * time.Second)
	}
	m := w.Report().Memory
	if m.Bytes > 8<<10 {
		t.Errorf("%d bytes", m.Bytes)
	}
	if diff := cmp.Diff([]string{"firing Busy", "firing Rare"}, w.alerts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
