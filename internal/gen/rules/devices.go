package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

const byDevice = "${target}, device"

// kind is one of the groups that alerts on devices fall into. A group
// records which devices its alerts are about and who holds them, which in a
// healthy fleet are none; so the holders of the fleet are read once for a
// group and not for each subject.
type kind struct{ name, interval, active, holders string }

var (
	// Reasons of the verdict exist only where something is wrong.
	verdicts = kind{"accel-verdicts", "", "device:accel_verdict:active", "device_pod:accel_verdict:holder"}
	// Conditions read the series of every device; their alerts always wait.
	conditions = kind{"accel-conditions", "${conditions_interval}", "device:accel_condition:active", "device_pod:accel_condition:holder"}
	// Trends look back for hours or days, and are seldom evaluated for it.
	trends = kind{"accel-trends", "${trends_interval}", "device:accel_trend:active", "device_pod:accel_trend:holder"}
	// Weeks is recorded less often still: who looks back for a week reads every
	// sample of it.
	weeks = kind{name: "accel-weeks", interval: "${weeks_interval}"}
)

// deviceGroups sorts the rules of all subjects into the groups.
func deviceGroups(subjects []subject) (template, error) {
	var reasons, rest, past, slow []templateRule
	for _, s := range subjects {
		for _, r := range s.Rules {
			if r.Reason != "" {
				reasons = append(reasons, r)
			} else {
				rest = append(rest, r)
			}
		}
		past = append(past, s.Weeks...)
		slow = append(slow, s.Trends...)
	}
	var t template
	for _, g := range []struct {
		kind  kind
		rules []templateRule
	}{{verdicts, reasons}, {conditions, rest}, {weeks, past}, {trends, slow}} {
		made, err := g.kind.group(g.rules)
		if err != nil {
			return template{}, err
		}
		if len(made.Rules) > 0 {
			t.Groups = append(t.Groups, made)
		}
	}
	return t, nil
}

// group returns first what is recorded, each condition so that it is evaluated
// once, then the alerts.
func (k kind) group(rules []templateRule) (templateGroup, error) {
	g := templateGroup{Name: k.name, Interval: k.interval}
	var alerts []templateRule
	var about []string
	for _, r := range rules {
		switch {
		case r.Record != "":
			g.Rules = append(g.Rules, r)
			continue
		case k == weeks:
			return g, fmt.Errorf("%s: a week only has records", r.Alert)
		case r.Expr != "" || (r.Device == "") == (r.Reason == ""):
			return g, fmt.Errorf("%s: an alert on devices has either device or reason", r.Alert)
		case k == trends && r.Reason != "":
			return g, fmt.Errorf("%s: a reason is no trend", r.Alert)
		}
		active := r.reasons()
		if r.Device != "" || r.For != "" {
			name := "device:" + r.Alert + ":active"
			g.Rules = append(g.Rules, templateRule{Record: name, Expr: cmp.Or(r.Device, active)})
			active = name
		}
		if r.Device != "" {
			about = append(about, active)
		}
		// The side with the holders comes first: two pods may share a device.
		r.Expr = k.holders + "\n* on (" + byDevice + ") group_left ()\n" + active + "\nor on (" + byDevice + ")\n" + active
		if r.For != "" {
			since := "device:" + r.Alert + ":since"
			g.Rules = append(g.Rules, templateRule{Record: since, Expr: k.since(since, active)})
			r.Expr = "(\n" + r.Expr + "\n)\nand on (" + byDevice + ")\n(" + k.waited(since, r.For) + ")"
			r.For = ""
		}
		alerts = append(alerts, r)
	}
	if len(alerts) == 0 {
		return g, nil
	}
	if k == verdicts {
		about = []string{`max by (` + byDevice + `) (accel_device_health_reason{parent="",severity!="unknown"})`}
	}
	g.Rules = append(
		g.Rules,
		templateRule{Record: k.active, Expr: strings.Join(about, "\nor on ("+byDevice+")\n")},
		templateRule{Record: k.holders, Expr: k.held()},
	)
	g.Rules = append(g.Rules, alerts...)
	return g, nil
}

// since returns the rule that records since when a device is active. An alert
// with a wait compares it and has no for, which would restart with each new pod
// on the device.
func (k kind) since(name, active string) string {
	return k.before(name, "") + `
and on (` + byDevice + `)
` + active + `
or on (` + byDevice + `)
timestamp(` + active + `)`
}

// waited is for which devices since was the same so long ago.
func (k kind) waited(since, wait string) string {
	return since + " == on (" + byDevice + ") " + k.before(since, " offset "+wait)
}

// before is a record as the latest evaluation made it, or that at an offset.
// Prometheus looks back for five minutes by itself, and groups may have longer
// intervals.
func (k kind) before(record, offset string) string {
	if k.interval == "" {
		return record + offset
	}
	return "last_over_time(" + record + "[${" + onceAndAHalf + "}]" + offset + ")"
}

// held is who holds the whole device, or a partition of it, of those that an
// alert is about. A pod may hold two partitions of one device, which are made
// one before they get its name.
func (k kind) held() string {
	return `max by (` + byDevice + `, namespace, pod) (
  accel_allocation_info{parent=""}
  and on (` + byDevice + `)
  ` + k.active + `
  or
  label_replace(
    max by (${target}, parent, namespace, pod) (
      accel_allocation_info{parent!=""}
      and on (${target}, parent)
      label_replace(` + k.active + `, "parent", "$1", "device", "(.+)")
    ),
    "device", "$1", "parent", "(.+)"
  )
)`
}

// reasons returns one series for each whole device with one of the reasons, and
// none of the reasons that explain it better.
func (r *templateRule) reasons() string {
	state := r.State
	if state == "" {
		state = "degraded|failed"
	}
	match := `parent="",` + matcher("reason", "=", r.Reason) + "," + matcher("severity", "=", state)
	if r.Except != "" {
		match += "," + matcher("reason", "!", r.Except)
	}
	made := "max by (" + byDevice + ") (accel_device_health_reason{" + match + "})"
	if r.Unless != "" {
		made = "(" + made + " unless on (" + byDevice + `) accel_device_health_reason{parent="",` + matcher("reason", "=", r.Unless) + "})"
	}
	return made
}

// matcher compares with a regular expression, or with a string where the
// expression is one. The sign is = or !.
func matcher(label, sign, re string) string {
	operator := sign + "~"
	if regexp.QuoteMeta(re) == re && !reference.MatchString(re) {
		operator = strings.TrimSuffix(sign, "=") + "="
	}
	return label + operator + `"` + re + `"`
}
