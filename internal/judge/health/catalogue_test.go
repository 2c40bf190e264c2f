package health_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// judged returns the verdict on a device after its state has lasted for an hour.
func judged(c *health.Catalogue, e []collector.Event, f ...fact) string {
	j := health.New(c, health.Options{})
	j.Judge(snapshot(start, nil, gpu(start, f...)))
	now := start.Add(time.Hour)
	s := snapshot(now, e, gpu(now, f...))
	j.Judge(s)
	return verdict(&s.Devices[0])
}

func TestOverrides(t *testing.T) {
	pending := set(collector.RowRemapPending, 1)
	throttled := news(hang(earlier(30*minute)), event(collector.EventThrottled))
	for _, c := range []struct {
		name, file string
		news       []collector.Event
		facts      []fact
		want       string
	}{
		{"severity", "xid: [{code: 95, severity: degraded}]", news(xid(95)), nil, "degraded reset xid_95"},
		{"action", "xid: [{code: 95, action: reboot}]", news(xid(95)), nil, "failed reboot xid_95"},
		{"a new code", "xid: [{code: 777, severity: failed, action: replace, text: a new fault}]", news(xid(777)), nil, "failed replace xid_777"},
		{"a sub-code", "xid: [{code: 145, sub: rlw_remap_0x40, severity: none}]", news(xid(145, sub("RLW_REMAP:0x40"))), nil, "healthy none"},
		{"a sub-code of the unit", "xid: [{code: 145, sub: rlw_remap, severity: failed, action: reboot}]", news(xid(145, sub("RLW_REMAP:0x99"))), nil, "failed reboot xid_145_rlw_remap"},
		{"sub-codes keep their entries", "xid: [{code: 145, severity: none}]", news(xid(145, sub("RLW_REMAP:0x40"))), nil, "failed reset xid_145_rlw_remap_0x40"},
		{"an event", "events: [{event: poison, severity: failed, action: reboot}]", news(event(collector.EventPoison)), nil, "failed reboot event_poison"},
		{"unknown codes", "unknown: {severity: none}", news(xid(777)), nil, "healthy none"},
		{"ends", "xid: [{code: 95, ends: answer}]", news(xid(95, past(time.Minute))), nil, "healthy none"},
		{"condition severity", "conditions: [{reason: row_remap_pending, severity: failed}]", nil, facts(pending), "failed reset row_remap_pending"},
		{"condition off", "conditions: [{reason: row_remap_pending, severity: none}]", nil, facts(pending), "healthy none"},
		{"condition at its time", "conditions: [{reason: row_remap_pending, for: 60m}]", nil, facts(pending), "degraded reset row_remap_pending"},
		{"grace", "events: [{event: hang, grace: 45m}]", throttled, nil, "degraded reset event_hang"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat, err := health.Parse("my.yaml", []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := judged(cat, c.news, c.facts...); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := judged(health.Builtin(), news(xid(95))); got != "failed reset xid_95" {
		t.Errorf("an override has changed the built-in catalogue: %s", got)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"unknown key", "xid:\n  - {code: 95, serverity: none}", "my.yaml:2: xid[0].serverity: unknown key"},
		{"severity", "xid:\n  - {code: 95,\n     severity: fatal}", `my.yaml:3: xid[0].severity: found "fatal"; accepted is one of none, degraded, failed`},
		{"action", "xid: [{code: 95, action: pray}]", `my.yaml:1: xid[0].action: found "pray"; accepted is one of none, inspect, update_software, restart_app, drain_p2p, recover_imex_domain, reprogram, drain_and_reset, reset, restart_vm, reboot, replace`},
		{"ends", "xid: [{code: 95, ends: never}]", `my.yaml:1: xid[0].ends: found "never"; accepted is reset, load, answer or a duration from 1s to 720h`},
		{"code", "xid: [{code: 0}]", "my.yaml:1: xid[0].code: found the number 0; accepted is a whole number, from 1 to 99999999"},
		{"neither code nor event", "xid: [{severity: none}]", "my.yaml:1: xid[0]: found neither code nor event, or both; accepted is one of them"},
		{"event among codes", "xid: [{event: poison}]", "my.yaml:1: xid[0]: found code or event in the wrong list; accepted is code in xid and sxid, event in events"},
		{"twice", "xid:\n  - code: 3\n  - code: 4\n  - code: 3\n", "my.yaml:4: xid[2]: found a second time, first in xid[0]; accepted is once"},
		{"sub", "xid: [{code: 145, sub: RLW_REMAP:0x40}]", `found sub "RLW_REMAP:0x40"; accepted is lower snake case: rlw_remap_0x40`},
		{"text", `xid: [{code: 95, text: "a\nb"}]`, `found text "a\nb"; accepted is one line`},
		{"unknown codes are not fatal", "unknown: {severity: failed}", "my.yaml:1: unknown: found severity failed for unknown codes; accepted is none or degraded"},
		{"condition unknown", "conditions:\n  - {reason: no_such, severity: none}", `my.yaml:2: conditions[0].reason: found "no_such"; accepted is the reason of a condition of the catalogue`},
		{"a test", "conditions: [{reason: device_lost, value: 1}]", "my.yaml:1: conditions[0].value: unknown key"},
		{"for nothing", "conditions: [{reason: row_remap_pending, for: 0s}]", "accepted is a duration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := health.Parse("my.yaml", []byte(c.file))
			if mistakes, ok := errors.AsType[strict.Mistakes](err); !ok || len(mistakes) != 1 {
				t.Fatalf("%T of %v", err, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestApply changes the catalogue while faults are active.
func TestApply(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	step := func(after time.Duration, e []collector.Event, want string) *collector.Verdict {
		t.Helper()
		now := start.Add(after)
		s := snapshot(now, e, gpu(now, set(collector.RowRemapPending, 1)))
		j.Judge(s)
		consistent(t, s)
		if got := verdict(&s.Devices[0]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		return s.Devices[0].Verdict
	}
	apply := func(file string) {
		t.Helper()
		c, err := health.Parse("my.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		j.Apply(c)
	}
	step(0, news(xid(95), xid(777), xid(32)), "failed reset xid_95 xid_32 xid_unknown row_remap_pending")
	apply("xid: [{code: 95, severity: none}, {code: 777, severity: failed, action: replace}]\nconditions: [{reason: row_remap_pending, severity: none}]")
	step(second, nil, "failed replace xid_777 xid_32")
	apply("xid: [{code: 777, severity: none}, {code: 32, severity: none}]\nconditions: [{reason: row_remap_pending, severity: none}]")
	step(2*second, nil, "healthy none")
	apply("conditions: [{reason: row_remap_pending, for: 4s}]")
	step(3*second, news(xid(119)), "failed reset xid_119")
	step(4*second, nil, "failed reset xid_119 row_remap_pending")
	apply("xid: [{code: 119, text: changed}]")
	if v := step(5*second, nil, "failed reset xid_119 row_remap_pending"); v.Reasons[0].Text != "Xid 119: changed" || v.Since != start.Add(3*second) {
		t.Errorf("%+v", v)
	}
}

func TestBuiltin(t *testing.T) {
	c := health.Builtin()
	cited := map[string]bool{}
	reasons := map[string]bool{}
	for _, e := range c.Entries() {
		name := e.Name
		if e.Text == "" || name == "" || e.Class == "" || e.Fault == "" || len(e.From) == 0 {
			t.Errorf("%d %s %s is incomplete: %+v", e.Code, e.Event, e.Sub, e)
		}
		if e.Fault == "application" && e.Severity != health.None {
			t.Errorf("%s %d is an application error and affects the device", name, e.Code)
		}
		if (e.Class == "application" || e.Class == "test") && e.Severity != health.None {
			t.Errorf("%s %d affects the device", name, e.Code)
		}
		if e.Severity == health.Failed && e.Action == health.NoAction {
			t.Errorf("%s %d: failed without an action", name, e.Code)
		}
		// NVIDIA has published no action for these codes, so the driver's takes
		// precedence.
		for _, from := range e.From {
			cited[from] = true
			if from == "header" && e.Severity == health.Failed && e.Rules != "driver" {
				t.Errorf("%s %d is failed whatever the driver recommends, but its only source is a header", name, e.Code)
			}
		}
	}
	for _, cond := range c.Conditions() {
		if reasons[cond.Reason] || cond.Text == "" {
			t.Errorf("condition %s: twice or without text", cond.Reason)
		}
		reasons[cond.Reason] = true
		for _, from := range cond.From {
			cited[from] = true
		}
	}
	for _, e := range c.Entries() {
		for _, reason := range append(e.While, e.SameAs) {
			if reason != "" && !reasons[reason] {
				t.Errorf("%s %d names the condition %s", e.Name, e.Code, reason)
			}
		}
		for _, kind := range e.Heals {
			if kind != "reset" && !slices.ContainsFunc(c.Entries(), func(o health.Entry) bool { return o.Event == kind }) {
				t.Errorf("%s heals the event %s", e.Name, kind)
			}
		}
	}
	for key := range cited {
		if c.Sources[key] == "" {
			t.Errorf("source %s has no title", key)
		}
	}
	for key := range c.Sources {
		if !cited[key] {
			t.Errorf("source %s is not used", key)
		}
	}
}

// limitName is a value of the label limit.
var limitName = regexp.MustCompile(`\b(low_)?(warning|critical)\b|\b(fatal|shutdown|slowdown|max_operating)\b`)

// TestLimitsAreJudged: each limit that the metric table names is compared with its reading.
func TestLimitsAreJudged(t *testing.T) {
	judged := map[string]bool{
		// The driver keeps the device below them.
		"accel_temperature_limit_celsius slowdown": true, "accel_temperature_limit_celsius max_operating": true,
		// A rail or the power above its warning limit works; the critical limit is judged.
		"accel_fpga_voltage_limit_volts warning": true, "accel_fpga_current_limit_amperes warning": true, "accel_fpga_power_threshold_watts warning": true,
		// Only a V80 has them, of which the driver's alarms are read: fpga_sensor_critical.
		"accel_fpga_voltage_limit_volts fatal": true, "accel_fpga_current_limit_amperes fatal": true,
	}
	for _, c := range health.Builtin().Conditions() {
		for _, limit := range c.ThanWhere["limit"] {
			judged[c.Than+" "+limit] = true
		}
	}
	limits := 0
	for _, m := range collector.Table() {
		// The driver keeps the power of a device below its limit.
		if m.Scope != collector.PerDevice || !regexp.MustCompile(`_(limit|threshold)_[a-z]+$`).MatchString(m.Name) || !slices.Contains(m.Labels, "limit") || m == collector.PowerLimit {
			continue
		}
		for _, limit := range limitName.FindAllString(m.Values[0], -1) {
			if limits++; !judged[m.Name+" "+limit] {
				t.Errorf("no condition has the limit %s of %s", limit, m.Name)
			}
		}
	}
	if limits < 15 {
		t.Errorf("the metric table names only %d limits", limits)
	}
}
