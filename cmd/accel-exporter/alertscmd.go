package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// alertsCommand is `accel-exporter alerts`: what a running exporter's rules found,
// the most urgent first.
func alertsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	var view viewFlags
	app := kingpin.New("accel-exporter alerts", "Lists the alerts of a running exporter, the most urgent first, with what to do. The exporter needs rules: --alertmanager.url, --rules.file or --rules.builtin.")
	ask.add(app)
	view.add(app)
	what := app.Arg("WHAT", alertsHelp).Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	var report engine.Report
	if err := ask.get(ctx, "/debug/rules", "", &report); err != nil {
		return err
	}
	list := newAlertList(&report)
	if len(*what) > 0 {
		all := len(list.Alerts)
		list.Alerts = slices.DeleteFunc(list.Alerts, func(a engine.Alert) bool { return !alertFits(&a, *what) })
		list.Others = all - len(list.Alerts)
		maps.DeleteFunc(list.Broken, func(rule, _ string) bool { return !slices.Contains(*what, rule) })
	}
	return show(&view, stdout, list, printAlerts)
}

const alertsHelp = "Only alerts with one of these: a name (AcceleratorFailed), a severity, a state (firing, pending, resolved), the value of a label, as a device or the beginning of its id, a namespace or a workload, or a pod, as POD or NAMESPACE/POD."

// alertList is what `accel-exporter alerts --json` prints.
type alertList struct {
	// EvaluatedAt is the time of the last evaluation, zero before the first.
	EvaluatedAt time.Time      `json:"evaluated_at,omitzero"`
	Alerts      []engine.Alert `json:"alerts"`
	// Others is how many alerts the arguments leave out.
	Others int `json:"others"`
	// Broken are the errors of rules, by rule.
	Broken map[string]string `json:"failing_rules,omitempty"`
}

func newAlertList(r *engine.Report) *alertList {
	list := &alertList{EvaluatedAt: r.Time, Alerts: []engine.Alert{}, Broken: map[string]string{}}
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			if rule.LastError != "" {
				list.Broken[rule.Name] = rule.LastError
			}
			list.Alerts = append(list.Alerts, rule.Alerts...)
		}
	}
	slices.SortStableFunc(list.Alerts, func(x, y engine.Alert) int {
		return cmp.Or(cmp.Compare(x.Urgency(), y.Urgency()), x.ActiveAt.Compare(y.ActiveAt))
	})
	return list
}

func alertFits(a *engine.Alert, what []string) bool {
	names := slices.Collect(maps.Values(a.Labels))
	names = append(names, stateOf(a), string(a.State), a.Labels["namespace"]+"/"+a.Labels["pod"])
	for _, text := range a.Annotations { // which names the pods of a device
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ,;:", r) }) {
			if parts := strings.Split(strings.TrimRight(word, "."), "/"); len(parts) == 2 {
				names = append(names, parts[0]+"/"+parts[1], parts[1])
			}
		}
	}
	return slices.ContainsFunc(what, func(w string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, w) }) ||
			len(w) > 3 && strings.HasPrefix(strings.ToLower(a.Labels["device"]), strings.ToLower(w))
	})
}

// stateOf returns the state of an alert as it is printed.
func stateOf(a *engine.Alert) string {
	if a.State == engine.Inactive {
		return "resolved"
	}
	return string(a.State)
}

var severityColors = map[string]string{"critical": red, "warning": yellow}

func printAlerts(s *screen, list *alertList) error {
	for _, rule := range slices.Sorted(maps.Keys(list.Broken)) {
		s.paragraph(red, "", "rule "+rule+" fails: "+list.Broken[rule])
	}
	switch {
	case list.EvaluatedAt.IsZero():
		s.paragraph("", "", "The rules have not been evaluated yet.")
		return nil
	case len(list.Alerts) == 0 && list.Others > 0:
		s.paragraph("", "", fmt.Sprintf("None of these alerts fires or is pending; of the others %d do.", list.Others))
		return nil
	case len(list.Alerts) == 0:
		s.paragraph(green, "", "No alert fires or is pending.")
		return nil
	}
	for _, a := range list.Alerts {
		age := func(t time.Time) string { return list.EvaluatedAt.Sub(t).Round(time.Second).String() }
		when := stateOf(&a) + " for " + age(a.ActiveAt)
		if a.State == engine.Inactive {
			when = "resolved " + age(a.ResolvedAt) + " ago"
		}
		var about []string
		for _, name := range []string{"device", "namespace", "workload", "pod", "reason"} {
			if v := a.Labels[name]; v != "" {
				about = append(about, name+" "+v)
			}
		}
		s.alert(a.Labels["severity"], a.Labels["alertname"], when,
			a.Annotations["summary"], strings.Join(about, ", "), a.Annotations["description"], s.link(a.Annotations["runbook_url"]))
	}
	return nil
}

// alert prints an alert with what is known about it.
func (s *screen) alert(severity, name, state string, about ...string) {
	fmt.Fprintf(s, "%s %s\n", s.paint(severityColors[severity], clean(severity+" "+name)), s.paint(faint, state))
	for _, text := range about {
		s.paragraph("", "    ", text)
	}
}
