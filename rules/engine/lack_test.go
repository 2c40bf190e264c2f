package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// lacking is a world without the metric gone; ended was last on the page four minutes
// ago, and a join of dup with itself fails.
func lacking(t *testing.T) *world {
	w := newWorld(t, group(`- {record: r, expr: 'count(count_over_time({__name__!=""}[10m]))'}`))
	page := []string{`temp{device="a"} 95`, `temp{device="b"} 50`, `limit{device="a"} 90`, `dup{device="a",n="1"} 1`, `dup{device="a",n="2"} 1`, "zero 0"}
	w.set(append(page, "ended 1")...)
	w.at(0)
	w.set(page...)
	for minute := range 4 {
		w.at(time.Duration(minute+1) * time.Minute)
	}
	return w
}

// skipped reports whether an expression is skipped. Then its evaluation must yield
// nothing, without an error.
func (w *world) skipped(expr string) bool {
	w.t.Helper()
	skipped, err := w.Lacks(expr)
	if err != nil {
		w.t.Fatal(err)
	}
	if skipped {
		if v, err := w.Compute(w.t.Context(), expr, w.now); len(v) > 0 || err != nil {
			w.t.Errorf("%s is skipped but yields %v, %v", expr, v, err)
		}
	}
	return skipped
}

// TestSkipping: an expression that needs a metric which the node lacks is skipped, and
// no other.
func TestSkipping(t *testing.T) {
	w := lacking(t)
	for _, expr := range []string{
		`gone`, `gone{device="a"}`, `temp{device="none"}`, `temp{device!~"a|b"}`, `gone offset 1m`, `gone @ end()`, `(gone)`, `-gone`,
		`rate(gone[5m])`, `rate(gone[5m] offset 1m)`, `max_over_time(gone[5m:1m])`, `max_over_time((temp and gone)[5m:1m])`, `last_over_time(gone[1h])`, `quantile_over_time(0.9, gone[5m])`,
		`sum(gone)`, `count by (device) (gone) > 0`, `group without (device) (gone)`,
		`gone > 1`, `1 - gone`, `gone == bool 0`, `0 < bool gone`, `gone * scalar(temp{device="a"})`,
		`gone and temp`, `temp and on (device) gone`, `gone unless temp`, `gone or gone`, `gone or temp{device="none"}`, `temp unless limit and gone`, `absent(gone) and gone`,
		`temp > gone`, `temp > limit and gone`, `temp * on (device) group_left (model) gone`, `gone == on (device) group_right temp`, `(gone or gone) * on () temp`,
		`label_replace(gone, "a", "$1", "device", "(.+)")`, `label_join(gone, "a", "-", "device")`, `timestamp(gone)`, `minute(gone)`, `clamp_max(gone, scalar(gone))`,
		`histogram_quantile(0.9, sum by (le) (rate(gone_bucket[5m])))`, `ALERTS{alertname="gone"}`,
		`abs(temp) and gone`, `rate(temp[5m]) and gone`, `sum(temp) / 2 > 1 and gone`, `last_over_time(temp[5m]) and gone`, `-(temp > 1 unless limit) and gone`,
	} {
		if !w.skipped(expr) {
			t.Errorf("%s is evaluated", expr)
		}
	}
	for _, expr := range []string{
		// They yield something without the metric.
		`absent(gone)`, `absent(gone{device="a"} > 1)`, `absent_over_time(gone[5m])`, `absent_over_time(gone[5m:1m])`, `scalar(gone)`, `vector(scalar(gone))`, `count(absent(gone))`,
		`time()`, `vector(1)`, `hour()`, `minute() >= 0`, `pi()`, `scalar(gone) == bool 1`, `vector(1) + scalar(gone)`,
		`gone or temp`, `temp or gone`, `temp unless gone`, `temp unless on (device) (gone or limit)`, `gone or vector(0)`, `gone or absent(gone)`, `temp and absent_over_time(gone[5m])`,
		// The series is in memory, though the expression may yield nothing now.
		`ended`, `ended offset 4m`, `max_over_time(ended[5m])`, `rate(ended[1m])`, `zero == 1`, `temp > 100`, `temp unless temp`, `absent(temp)`,
		// Which metrics they need depends on labels.
		`{__name__=~"gone|none"}`, `{device="none"}`,
		// They fail, or might.
		`gone and on (device) (dup * on (device) dup)`, `gone or dup * on (device) dup`, `gone unless (dup / on (device) group_left dup)`, `sum(gone) + sum(dup - ignoring (n) dup)`,
		`gone and -{__name__=~"temp|limit"}`, `gone and abs({__name__=~"temp|limit"})`, `gone and rate({__name__=~"temp|limit"}[5m])`, `gone and ({__name__=~"temp|limit"} > bool 1)`, `gone and max_over_time((temp or limit)[5m:1m])`,
		`gone and abs(sum by (__name__) ({__name__=~"temp|limit"}))`, `gone and 2 * (temp or on (device, n) limit)`, `gone and label_replace(temp, "device", "", "", "")`, `topk(scalar(gone), gone)`, `topk(scalar(zero / zero), temp) and gone`, `absent(dup * on (device) dup) and gone`,
	} {
		if w.skipped(expr) {
			t.Errorf("%s is skipped", expr)
		}
	}
}

// TestSkippingAll: skipping is right for every function, aggregation and operator of
// the library, in each position.
func TestSkippingAll(t *testing.T) {
	w := lacking(t)
	vectors := []string{"gone", "temp", "ended", "dup", `{__name__=~"temp|limit"}`, "(temp or on () limit)"}
	var exprs []string
	for name, f := range parser.Functions {
		if f.Experimental {
			continue // the parser refuses it
		}
		for _, v := range vectors {
			var args []string
			for _, kind := range f.ArgTypes[:len(f.ArgTypes)-min(1, max(0, f.Variadic))] {
				args = append(args, map[parser.ValueType]string{parser.ValueTypeVector: v, parser.ValueTypeMatrix: v + "[5m:1m]", parser.ValueTypeScalar: "0.5", parser.ValueTypeString: `"a"`}[kind])
			}
			exprs = append(exprs, fmt.Sprintf("%s(%s)", name, strings.Join(args, ", ")))
			if f.Variadic > 0 {
				exprs = append(exprs, fmt.Sprintf("%s(%s)", name, strings.Join(append(args, v), ", ")))
			}
		}
	}
	for _, v := range vectors {
		for _, op := range []string{"sum", "avg", "count", "min", "max", "group", "stddev", "stdvar"} {
			exprs = append(exprs, fmt.Sprintf("%s(%s)", op, v), fmt.Sprintf("%s by (__name__) (%s)", op, v))
		}
		exprs = append(exprs, fmt.Sprintf("topk(1, %s)", v), fmt.Sprintf("bottomk(1, %s)", v), fmt.Sprintf("quantile(0.5, %s)", v), fmt.Sprintf(`count_values("v", %s)`, v), "-"+v, "+"+v)
		for _, op := range []string{"+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", "<", ">=", "<=", "> bool", "and", "or", "unless"} {
			for _, on := range []string{"", "on (device)", "on ()", "ignoring (n)", "on (device) group_left", "on () group_right"} {
				if set := op == "and" || op == "or" || op == "unless"; set && strings.Contains(on, "group") {
					continue
				}
				for _, other := range vectors {
					exprs = append(exprs, fmt.Sprintf("%s %s %s %s", v, op, on, other))
				}
			}
			if op != "and" && op != "or" && op != "unless" {
				exprs = append(exprs, fmt.Sprintf("%s %s 2", v, op), fmt.Sprintf("2 %s %s", op, v), fmt.Sprintf("%s %s scalar(gone)", v, op))
			}
		}
	}
	skipped := 0
	for _, expr := range exprs {
		if _, err := w.Lacks(expr); err != nil {
			continue // invalid, such as the arguments of sort_by_label
		}
		for _, whole := range []string{expr, "abs(" + expr + ")", "(" + expr + ") and gone", "gone unless (" + expr + ")", "-(" + expr + ") or gone", "max_over_time((" + expr + ")[3m:1m]) and gone"} {
			if _, err := w.Lacks(whole); err == nil && w.skipped(whole) {
				skipped++
			}
		}
	}
	if skipped < 1000 {
		t.Errorf("%d expressions are skipped", skipped)
	}
}

// TestForgottenAlert: an alert goes through its states when its series ends, also once
// the series is no longer in memory and its expression is skipped.
func TestForgottenAlert(t *testing.T) {
	w := newWorld(t, group(`
- alert: Kept
  expr: temp > 90
  keep_firing_for: 30m
- alert: Hot
  expr: temp > 90
- alert: Late
  expr: temp > 90
  for: 1h
- {record: hot, expr: temp > 90}
`))
	w.set("temp 95")
	w.at(0)
	if diff := cmp.Diff([]string{"firing Hot", "firing Kept", "pending Late"}, w.alerts()); diff != "" {
		t.Fatal(diff)
	}
	w.set("other 1")
	for minute := 1; minute <= 50; minute++ {
		w.at(time.Duration(minute) * time.Minute)
		want, check := map[int][]string{
			1:  {"resolved Hot", "firing Kept"},
			16: {"resolved Hot", "firing Kept"},
			17: {"firing Kept"},
			30: {"firing Kept"},
			31: {"resolved Kept"},
			50: nil,
		}[minute]
		if diff := cmp.Diff(want, w.alerts()); check && diff != "" {
			t.Errorf("after %d minutes (-want +got):\n%s", minute, diff)
		}
		if minute > 15 && !w.skipped("temp > 90") {
			t.Fatal("the series is still in memory")
		}
	}
	for _, name := range []string{"Kept", "Hot", "Late", "hot"} {
		if r := w.rule(name); r.Health != engine.HealthOK || r.Series != 0 {
			t.Errorf("%s: %s, %d series", name, r.Health, r.Series)
		}
	}
	if got := w.query(`{__name__=~"ALERTS.*|hot"}`); got != nil {
		t.Errorf("they do not end: %v", got)
	}
}
