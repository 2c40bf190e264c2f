package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var reference = regexp.MustCompile(`\$\{([a-z_]*)\}`)

// expand replaces each ${name} in text by its value, in which further names
// may stand, and notes in used which names it met.
func (v values) expand(text string, used map[string]bool) (string, error) {
	const maxDepth = 4
	for range maxDepth {
		var unknown []string
		text = reference.ReplaceAllStringFunc(text, func(ref string) string {
			name := ref[2 : len(ref)-1]
			value, ok := v[name]
			if !ok {
				unknown = append(unknown, ref)
				return ref
			}
			used[name] = true
			return value
		})
		if len(unknown) > 0 {
			return "", fmt.Errorf("no value for %s", strings.Join(unknown, ", "))
		}
		if !reference.MatchString(text) {
			return text, nil
		}
	}
	return "", fmt.Errorf("values of %q name each other", reference.FindString(text))
}

// unused returns the names that no template mentions.
func (v values) unused(used map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(name string) bool { return used[name] })
}

const byDevice = "${target}, device"

// reasonSeries is empty in a healthy fleet.
const reasonSeries = `accel_device_health_reason{severity!="unknown"}`

// prelude is what the group records before its alerts: the conditions by
// device, so that each is evaluated once, and who holds the devices that one
// of them, or a reason, is about.
func (g *templateGroup) prelude() []templateRule {
	var rules []templateRule
	var about []string
	for i := range g.Rules {
		r := &g.Rules[i]
		switch {
		case r.Device != "":
			rules = append(rules, templateRule{Record: r.condition(), Expr: r.Device})
			about = append(about, r.condition())
		case r.Reason != "" && !slices.Contains(about, reasonSeries):
			about = append(about, reasonSeries)
		}
	}
	return append(rules, templateRule{Record: g.Holders, Expr: `max by (` + byDevice + `, namespace, pod) (
  accel_allocation_info{parent=""}
  or
  label_replace(accel_allocation_info{parent!=""}, "device", "$1", "parent", "(.+)")
)
and on (` + byDevice + `)
` + enclose(strings.Join(about, "\nor on ("+byDevice+")\n"))})
}

// condition is the name under which the rule's expression by device is
// recorded.
func (r *templateRule) condition() string { return "device:" + r.Alert + ":active" }

// expr is the expression of the rule, before names are replaced.
func (r *templateRule) expr(holders string) (string, error) {
	forms := 0
	for _, form := range []string{r.Expr, r.Device, r.Reason} {
		if form != "" {
			forms++
		}
	}
	switch {
	case forms != 1:
		return "", fmt.Errorf("found %d of expr, device and reason; accepted is one", forms)
	case r.Expr != "":
		return strings.TrimSpace(r.Expr), nil
	case holders == "":
		return "", errors.New("device and reason need a group with holders")
	}
	active := r.condition()
	if r.Reason != "" {
		active = r.reasons()
	}
	// The side with the holders comes first: two pods may share a device.
	return holders + "\n* on (" + byDevice + ") group_left ()\n" + active + "\nor on (" + byDevice + ")\n" + active, nil
}

// reasons is one series for each whole device against which one of the
// reasons speaks.
func (r *templateRule) reasons() string {
	state := r.State
	if state == "" {
		state = "degraded|failed"
	}
	match := fmt.Sprintf(`parent="",reason=~"%s",severity=~"%s"`, r.Reason, state)
	if r.Except != "" {
		match += fmt.Sprintf(`,reason!~"%s"`, r.Except)
	}
	return "max by (" + byDevice + ") (accel_device_health_reason{" + match + "})"
}

func enclose(expr string) string {
	if !strings.Contains(expr, "\n") {
		return "(" + expr + ")"
	}
	return "(\n  " + strings.ReplaceAll(expr, "\n", "\n  ") + "\n)"
}
