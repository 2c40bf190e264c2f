package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/rules/render"
)

const byDevice = "${target}, device"

// kind is what alerts on devices are sorted by. Its groups record which devices
// their alerts are about and who holds them, which in a healthy fleet are none;
// so the holders of the fleet are read once for a group and not for each alert.
type kind struct{ name, interval, record string }

var (
	// Pages are alerts on reasons of which only the first fires for a device.
	pages = kind{"accel-pages", "", "accel_page"}
	// Reasons of the verdict exist only where something is wrong.
	verdicts = kind{"accel-verdicts", "", "accel_verdict"}
	// Conditions read the series of every device; their alerts always wait.
	conditions = kind{"accel-conditions", "${conditions_interval}", "accel_condition"}
	// Trends look back for hours or days, and are seldom evaluated for it.
	trends = kind{"accel-trends", "${trends_interval}", "accel_trend"}
	// Weeks is recorded less often still: who looks back for a week reads every
	// sample of it.
	weeks = kind{name: "accel-weeks", interval: "${weeks_interval}"}
)

// deviceGroups sorts the rules of all subjects into the groups.
func deviceGroups(subjects []subject) ([]render.Group, error) {
	var reasons, rest, past, slow []templateRule
	var ranks []string
	for _, s := range subjects {
		ranks = append(ranks, s.Ranks...)
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
	ranked, reasons, err := rank(reasons, ranks)
	if err != nil {
		return nil, err
	}
	var all []render.Group
	for _, g := range []struct {
		kind  kind
		rules []templateRule
	}{{pages, ranked}, {verdicts, reasons}, {conditions, rest}, {weeks, past}, {trends, slow}} {
		made, err := g.kind.groups(g.rules)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

// groups returns the groups of a kind. Each records what its alerts are about
// and the holders, and then has the alerts: an alert that read the holders of
// another group would see them late, and fire first without and then with a pod.
func (k kind) groups(rules []templateRule) ([]render.Group, error) {
	var chains []chain
	ranked := slices.Clone(rules)
	about := map[string]string{} // by alert
	for _, r := range rules {
		switch {
		case r.Record != "":
			chains = append(chains, chain{r})
			continue
		case k == weeks:
			return nil, fmt.Errorf("%s: a week only has records", r.Alert)
		case r.Expr != "" || (r.Device == "") == (r.Reason == ""):
			return nil, fmt.Errorf("%s: an alert on devices has either device or reason", r.Alert)
		case k == trends && r.Reason != "":
			return nil, fmt.Errorf("%s: a reason is no trend", r.Alert)
		}
		var c chain
		r.wait = cmp.Or(r.For, render.NoWait)
		r.Expr, r.For = r.reasons(), ""
		if k == pages {
			r.Expr = "(" + rankRecord + " == " + fmt.Sprint(r.rank) + ")"
		}
		if r.Device != "" || r.wait != render.NoWait {
			active := templateRule{Record: "device:" + r.Alert + ":active", Expr: cmp.Or(r.Device, r.Expr)}
			c, r.Expr = append(c, active), active.Record
		}
		about[r.Alert] = r.Expr
		if r.wait != render.NoWait {
			since := render.Since(r.Alert)
			c = append(c, templateRule{Record: since, Expr: k.since(since, r.Expr)})
		}
		chains = append(chains, append(c, r))
	}
	if k == weeks || len(about) == 0 {
		return k.groupsOf(joined(chains), 0, nil)
	}
	if k == pages {
		return k.groupsOf(joined(chains), pageRecords, func(own kind, rules []templateRule) []templateRule {
			out := own.pages(ranked)
			for _, r := range rules {
				r.Expr = strings.ReplaceAll(r.Expr, rankRecord, own.rank())
				if r.Alert != "" {
					r = own.alert(r)
					r.unobserved = own.unobserved()
				}
				out = append(out, r)
			}
			return out
		})
	}
	return k.groupsOf(joined(chains), 3, func(own kind, rules []templateRule) []templateRule {
		records := []templateRule{{Record: own.gap(), Expr: gap}}
		var alerts []templateRule
		var devices []string
		for _, r := range rules {
			if r.Alert == "" {
				if strings.HasSuffix(r.Record, ":active") {
					r.Expr = "(\n" + r.Expr + "\n)\n" + own.bridged(r.Record)
				}
				records = append(records, r)
				continue
			}
			devices = append(devices, about[r.Alert])
			if r.Reason != "" && r.wait == render.NoWait {
				r.Expr = "(" + r.Expr + "\nor\n(" + r.reasonsOf("last_over_time("+r.selector()+"[${scrape_gap}])") + " and on (${target}) " + own.gap() + "))"
			}
			alerts = append(alerts, own.alert(r))
		}
		if k == verdicts {
			devices = []string{`max by (` + byDevice + `) (accel_device_health_reason{parent="",severity!="unknown"})`}
		}
		records = append(
			records,
			templateRule{Record: own.active(), Expr: strings.Join(devices, "\nor on ("+byDevice+")\n")},
			templateRule{Record: own.holder(), Expr: own.held() + "\n" + own.bridged(own.holder())},
		)
		return append(records, alerts...)
	})
}

// groupsOf packs chains into groups, whose rules finish makes if there is any.
// It adds that number of rules.
func (k kind) groupsOf(chains []chain, added int, finish func(own kind, rules []templateRule) []templateRule) ([]render.Group, error) {
	packs, err := packed(chains, maxRules-added)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	var all []render.Group
	for i, rules := range packs {
		own := k
		if i > 0 {
			own.name += fmt.Sprintf("-%d", i+1)
			own.record += fmt.Sprintf("_%d", i+1)
		}
		if finish != nil {
			rules = finish(own, rules)
		}
		g := render.Group{Name: own.name, Interval: k.interval}
		for i := range rules {
			g.Rules = append(g.Rules, rules[i].form())
		}
		all = append(all, g)
	}
	return all, nil
}

func (k kind) active() string { return "device:" + k.record + ":active" }

func (k kind) holder() string { return "device_pod:" + k.record + ":holder" }

func (k kind) gap() string { return "target:" + k.record + ":gap" }

// gap yields the targets that were scraped a while ago and are not now. There,
// devices and holders of warnings stay what they were, so that a gap neither ends
// an alert nor restarts its wait. The family has one series for each exporter. An
// Engine on the node has no gaps.
const gap = `max by (${target}) (last_over_time(accel_config_last_reload_successful[${scrape_gap}]))
unless on (${target})
accel_config_last_reload_successful`

// bridged adds to a record what it had before, for targets in a gap.
func (k kind) bridged(record string) string {
	return "or\n(" + k.before(record, "") + " and on (${target}) " + k.gap() + ")"
}

// alert returns the alert whose expression is that of its devices, with the pods.
// The side with the holders comes first: two pods may share a device.
func (k kind) alert(r templateRule) templateRule {
	r.Expr = k.holder() + "\n* on (" + byDevice + ") group_left ()\n" + r.Expr + "\nor on (" + byDevice + ")\n" + r.Expr
	if r.wait != render.NoWait {
		r.Expr = "(\n" + r.Expr + "\n)\nand on (" + byDevice + ")\n(" + k.waited(render.Since(r.Alert)) + ")"
	}
	return r
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
func (k kind) waited(since string) string {
	return since + " == on (" + byDevice + ") " + k.before(since, " offset ${wait}")
}

// before is a record as the latest evaluation made it, or that at an offset.
// Prometheus looks back for five minutes by itself, and groups may have longer
// intervals.
func (k kind) before(record, offset string) string {
	if k.interval == "" {
		return record + offset
	}
	return "last_over_time(" + record + "[${once_and_a_half}]" + offset + ")"
}

// held is who holds the whole device, or a partition of it, of those that an
// alert is about. A pod may hold two partitions of one device, which are made
// one before they get its name.
func (k kind) held() string {
	allocations := "accel_allocation_info"
	if k.interval == "" {
		// Evaluated often, and about ill devices only: of those the exporter has
		// a family, which spares reading the allocations of the fleet.
		allocations = "accel_allocation_unhealthy"
	}
	return `max by (` + byDevice + `, namespace, pod) (
  ` + allocations + `{exported_pod="",parent=""}
  and on (` + byDevice + `)
  ` + k.active() + `
  or
  label_replace(
    max by (${target}, parent, namespace, pod) (
      ` + allocations + `{exported_pod="",parent!=""}
      and on (${target}, parent)
      label_replace(` + k.active() + `, "parent", "$1", "device", "(.+)")
    ),
    "device", "$1", "parent", "(.+)"
  )
)`
}

// rank separates the alerts that are named in ranks and gives each its place,
// beginning with 1, and returns them in that order.
func rank(rules []templateRule, ranks []string) (ranked, rest []templateRule, err error) {
	for _, r := range rules {
		r.rank = slices.Index(ranks, r.Alert) + 1
		switch {
		case r.rank > 0:
			ranked = append(ranked, r)
		case r.Severity == "critical":
			return nil, nil, fmt.Errorf("%s: a critical alert on a reason needs a place in ranks", r.Alert)
		default:
			rest = append(rest, r)
		}
	}
	slices.SortFunc(ranked, func(a, b templateRule) int { return a.rank - b.rank })
	for i, name := range ranks {
		if i >= len(ranked) || ranked[i].Alert != name {
			return nil, nil, fmt.Errorf("ranks: %s is there twice or is no alert on a reason", name)
		}
	}
	return ranked, rest, nil
}

// rankRecord stands for the rank that a group of pages records, until the name of
// the group is known.
const rankRecord = "${rank}"

func (k kind) rank() string { return "device:" + k.record + ":rank" }

// unobserved is the text of an annotation about a device that fires on while
// nobody observes it: the reasons that it had, and for how long.
func (k kind) unobserved() string {
	return "{{ range query (printf `device_reason:" + k.record + ":last{device=%q,instance=%q} unless on (device) device:" + k.record + ":reported{device=%q,instance=%q}` $labels.device $labels.instance $labels.device $labels.instance) | sortByLabel \"reason\" }}{{ .Labels.reason }} {{ end }}" +
		"{{ range query (printf `time() - (device:" + k.record + ":seen{device=%q,instance=%q} < time() - 120)` $labels.device $labels.instance) }}not observed for {{ .Value | humanizeDuration }}{{ end }}"
}

// pageRecords is the number of rules that pages returns.
const pageRecords = 6

// pages returns what each group of pages records before its alerts. The rank of a
// device is that of the gravest alert on what the exporter reports. While nobody
// observes the device, because its exporter is gone or its driver does not answer,
// it is the rank that was last seen. While a device has a rank its pods stay those
// that it had at first, so that pods that the same fault ends later raise no alerts
// of their own: holders are recorded before the rank, and read that of the
// evaluation before.
func (k kind) pages(ranked []templateRule) []templateRule {
	on := "on (" + byDevice + ") "
	reported, seen := "device:"+k.record+":reported", "device:"+k.record+":seen"
	last := "device_reason:" + k.record + ":last"
	var all []string
	for _, r := range ranked {
		all = append(all, fmt.Sprintf("%s * %d", r.selector(), r.rank))
	}
	return []templateRule{
		{Record: k.active(), Expr: "max by (" + byDevice + `) (accel_device_health_reason{parent="",severity!="unknown"})`},
		{Record: k.holder(), Expr: k.held() + "\nunless " + on + k.rank() + "\nor\n(" + k.holder() + " and " + on + k.rank() + ")"},
		{Record: reported, Expr: "min by (" + byDevice + ") (\n  " + strings.Join(all, "\n  or\n  ") + "\n)"},
		{Record: seen, Expr: "timestamp(" + reported + ")\nor " + on + `
(
  (
    ` + seen + `
    unless on (${target})
    (accel_source_up unless on (${target}) accel_source_up{source!~"dcgm|kernellog|pcie",reason!~"|absent"})
    or
    ` + seen + `
    and ` + on + `
    accel_device_health_reason{parent="",severity="unknown"}
  )
  > time() - ${unobserved_seconds}
)`},
		{Record: k.rank(), Expr: reported + "\nor " + on + "\n(" + k.rank() + " and " + on + seen + ")"},
		{Record: last, Expr: "max by (" + byDevice + `, reason) (
  accel_device_health_reason{parent="",severity!="unknown"}
  and ` + on + `
  ` + reported + `
)
or
(` + last + " and " + on + k.rank() + " unless " + on + reported + ")"},
	}
}

// reasons returns one series for each whole device with one of the reasons.
func (r *templateRule) reasons() string { return r.reasonsOf(r.selector()) }

func (r *templateRule) reasonsOf(selected string) string {
	made := "max by (" + byDevice + ") (" + selected + ")"
	if r.Yields {
		made = "(" + made + " unless on (" + byDevice + `) accel_device_health_reason{parent="",severity="failed"})`
	}
	return made
}

// selector selects the reasons of the alert.
func (r *templateRule) selector() string {
	match := `parent="",` + matcher("reason", "=", r.Reason) + "," + matcher("severity", "=", cmp.Or(r.State, "degraded|failed"))
	if r.Except != "" {
		match += "," + matcher("reason", "!", r.Except)
	}
	return "accel_device_health_reason{" + match + "}"
}

// matcher compares with a regular expression, or with a string where the
// expression is one. The sign is = or !.
func matcher(label, sign, re string) string {
	operator := sign + "~"
	if regexp.QuoteMeta(re) == re && !render.Reference.MatchString(re) {
		operator = strings.TrimSuffix(sign, "=") + "="
	}
	return label + operator + `"` + re + `"`
}
