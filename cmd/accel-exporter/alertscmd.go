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
	what := app.Arg("WHAT", "Only alerts with one of these: a name (AcceleratorLost), a severity, a state (firing, pending, inactive), or the value of a label, as a device, a pod, a namespace or NAMESPACE/POD.").Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	return show(ctx, &view, stdout, func(ctx context.Context) (*alertList, error) {
		var report engine.Report
		if err := ask.get(ctx, "/debug/rules", "", &report); err != nil {
			return nil, err
		}
		return newAlertList(&report, *what), nil
	}, printAlerts)
}

// alertList is what `accel-exporter alerts --json` prints.
type alertList struct {
	// EvaluatedAt is the time of the last evaluation, zero before the first.
	EvaluatedAt time.Time      `json:"evaluated_at,omitzero"`
	Alerts      []engine.Alert `json:"alerts"`
	// Broken are the errors of rules, by rule.
	Broken map[string]string `json:"failing_rules,omitempty"`
}

func newAlertList(r *engine.Report, what []string) *alertList {
	list := &alertList{EvaluatedAt: r.Time, Alerts: []engine.Alert{}, Broken: map[string]string{}}
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			if rule.LastError != "" {
				list.Broken[rule.Name] = rule.LastError
			}
			for _, a := range rule.Alerts {
				if len(what) == 0 || slices.ContainsFunc(what, func(w string) bool { return alertFits(&a.Alert, w) }) {
					list.Alerts = append(list.Alerts, a.Alert)
				}
			}
		}
	}
	slices.SortStableFunc(list.Alerts, func(x, y engine.Alert) int {
		return cmp.Or(cmp.Compare(x.Urgency(), y.Urgency()), x.ActiveAt.Compare(y.ActiveAt))
	})
	return list
}

func alertFits(a *engine.Alert, what string) bool {
	if strings.EqualFold(string(a.State), what) || a.Labels["namespace"]+"/"+a.Labels["pod"] == what {
		return true
	}
	for v := range maps.Values(a.Labels) {
		if strings.EqualFold(v, what) {
			return true
		}
	}
	return false
}

func printAlerts(s *screen, list *alertList) error {
	for _, rule := range slices.Sorted(maps.Keys(list.Broken)) {
		s.paragraph(red, "", "rule "+rule+" fails: "+list.Broken[rule])
	}
	switch {
	case list.EvaluatedAt.IsZero():
		s.paragraph("", "", "The rules have not been evaluated yet.")
		return nil
	case len(list.Alerts) == 0:
		s.paragraph(green, "", "No alert fires or is pending.")
		return nil
	}
	colours := map[string]string{"critical": red, "warning": yellow}
	for _, a := range list.Alerts {
		state, since := string(a.State), a.ActiveAt
		if a.State == engine.Inactive {
			state, since = "resolved", a.ResolvedAt
		}
		fmt.Fprintf(s, "%s %s\n", s.paint(colours[a.Labels["severity"]], clean(a.Labels["severity"]+" "+a.Labels["alertname"])),
			s.paint(faint, fmt.Sprintf("%s since %s", state, list.EvaluatedAt.Sub(since).Round(time.Second))))
		var about []string
		for _, name := range []string{"device", "namespace", "pod", "reason"} {
			if v := a.Labels[name]; v != "" {
				about = append(about, name+" "+v)
			}
		}
		for _, text := range []string{a.Annotations["summary"], strings.Join(about, ", "), a.Annotations["description"], a.Annotations["runbook_url"]} {
			if text != "" {
				s.paragraph("", "    ", text)
			}
		}
	}
	return nil
}
