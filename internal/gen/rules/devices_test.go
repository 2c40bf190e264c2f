package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const deviceValues = "{target: job, runbooks: r, scrape_gap: 5m, conditions_interval: 2m, trends_interval: 15m, weeks_interval: 1h}"

// TestDevices: alerts of all subjects come into three kinds of groups, in which
// the holders are recorded once, after what they are looked up for and before the
// alerts that name them; what is kept for a week has a group of its own. A group
// that would be too large is divided, and each part has its own holders.
func TestDevices(t *testing.T) {
	many := ""
	for i := range 18 {
		many += fmt.Sprintf(", {alert: M%d, reason: m}", i)
	}
	files, err := generated(t, deviceValues, map[string]string{
		"devices/a.yaml": "{rules: [{alert: A, reason: lost}, {alert: B, device: b}], weeks: [{record: w:max, expr: w}], trends: [{record: c:sum, expr: c}, {alert: C, device: 'c:sum[1d]'}]}",
		"devices/b.yaml": "{rules: [{alert: D, reason: hot}" + many + "]}",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"accel-verdicts  target:accel_verdict:gap device:accel_verdict:active device_pod:accel_verdict:holder A D M0 M1 M2 M3 M4 M5 M6 M7 M8 M9 M10 M11 M12 M13 M14",
		"accel-verdicts-2  target:accel_verdict_2:gap device:accel_verdict_2:active device_pod:accel_verdict_2:holder M15 M16 M17",
		"accel-conditions 2m target:accel_condition:gap device:B:active device:accel_condition:active device_pod:accel_condition:holder B",
		"accel-weeks 1h w:max",
		"accel-trends 15m target:accel_trend:gap c:sum device:C:active device:accel_trend:active device_pod:accel_trend:holder C",
	}
	var have []string
	for _, g := range files["devices.yaml"].Groups {
		line := []string{g.Name, g.Interval}
		for _, r := range g.Rules {
			line = append(line, r.Record+r.Alert)
			if r.Alert == "M17" && !strings.HasPrefix(r.Expr, "device_pod:accel_verdict_2:holder\n") {
				t.Errorf("M17 reads the holders of another group: %s", r.Expr)
			}
		}
		have = append(have, strings.Join(line, " "))
	}
	if !slices.Equal(have, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestWait: the wait of an alert is the device's and not that of its holder,
// also in a group whose interval is longer than Prometheus looks back.
func TestWait(t *testing.T) {
	checkExprs(t, "{target: job, runbooks: r, scrape_gap: 5m, trends_interval: 15m}",
		"{rules: [{alert: A, reason: hot, for: 3m}], trends: [{alert: B, device: b, for: 10m}]}",
		map[string]string{
			"target:accel_verdict:gap": "max by (job) (last_over_time(accel_config_last_reload_successful[5m])) unless on (job) accel_config_last_reload_successful",
			"device:A:active": `( max by (job, device) (accel_device_health_reason{parent="",reason="hot",severity=~"degraded|failed"}) )` +
				" or (device:A:active and on (job) target:accel_verdict:gap)",
			"device:A:since": "device:A:since and on (job, device) device:A:active or on (job, device) timestamp(device:A:active)",
			"A": "( device_pod:accel_verdict:holder * on (job, device) group_left () device:A:active or on (job, device) device:A:active )" +
				" and on (job, device) (device:A:since == on (job, device) device:A:since offset 3m)",
			"device:B:active": "( b ) or (last_over_time(device:B:active[1350s]) and on (job) target:accel_trend:gap)",
			"device:B:since":  "last_over_time(device:B:since[1350s]) and on (job, device) device:B:active or on (job, device) timestamp(device:B:active)",
			"B": "( device_pod:accel_trend:holder * on (job, device) group_left () device:B:active or on (job, device) device:B:active )" +
				" and on (job, device) (device:B:since == on (job, device) last_over_time(device:B:since[1350s] offset 10m))",
		})
}

// TestRanks: of the alerts in ranks only the first fires, and those that yield are
// silent beside them.
func TestRanks(t *testing.T) {
	const selector = `accel_device_health_reason{parent="",reason="hot",severity=~"degraded|failed"}`
	const unless = ` unless on (job, device) accel_device_health_reason{parent="",severity="failed"})`
	const yielding = "((max by (job, device) (" + selector + ")" + unless +
		" or ((max by (job, device) (last_over_time(" + selector + "[5m]))" + unless + " and on (job) target:accel_verdict:gap))"
	checkExprs(t, "{target: job, runbooks: r, scrape_gap: 5m, unobserved_seconds: 60}",
		"{ranks: [B, A], rules: [{alert: A, reason: lost, severity: critical}, {alert: B, reason: fatal, state: failed, for: 1m}, {alert: C, reason: hot, yields: true}]}",
		map[string]string{
			"device:accel_page:reported": `min by (job, device) ( accel_device_health_reason{parent="",reason="fatal",severity="failed"} * 1` +
				` or accel_device_health_reason{parent="",reason="lost",severity=~"degraded|failed"} * 2 )`,
			"A": "device_pod:accel_page:holder * on (job, device) group_left () (device:accel_page:rank == 2)" +
				" or on (job, device) (device:accel_page:rank == 2)",
			"device:B:active": "(device:accel_page:rank == 1)",
			"C":               "device_pod:accel_verdict:holder * on (job, device) group_left () " + yielding + " or on (job, device) " + yielding,
		})
}

// checkExprs compares the expressions of rules on devices, with single spaces. None
// of them has for: their waits are in the expressions.
func checkExprs(t *testing.T, values, devices string, want map[string]string) {
	t.Helper()
	files, err := generated(t, values, map[string]string{"devices/a.yaml": devices})
	if err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, g := range files["devices.yaml"].Groups {
		for _, r := range g.Rules {
			exprs[r.Record+r.Alert] = strings.Join(strings.Fields(r.Expr), " ")
			if r.For != "" {
				t.Errorf("%s has for: %s", r.Alert, r.For)
			}
		}
	}
	for name, want := range want {
		if exprs[name] != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, exprs[name], want)
		}
	}
}
