package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/status"
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
	what := app.Arg("WHAT", "Only alerts with one of these: a name (AcceleratorFailed), a severity, a state (firing, pending, resolved), the value of a label, as a device or the beginning of its id, a namespace or a workload, or a pod, as POD or NAMESPACE/POD.").Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	v, err := ask.getStatus(ctx, "")
	switch {
	case err != nil:
		return err
	case v.Alerts == nil:
		return errors.New(noRules)
	}
	names := map[string]bool{}
	for i := range v.Alerts.List {
		names[v.Alerts.List[i].Name()] = true
	}
	others := cmp.Or(strings.Join(slices.Sorted(maps.Keys(names)), ", "), "none")
	general := []string{"firing", "pending", "resolved", "critical", "warning", "info"} // which no alert may be now
	for _, w := range *what {
		if !v.Alerts.Evaluated.IsZero() && !slices.Contains(general, w) && !slices.ContainsFunc(v.Alerts.List, func(a status.Alert) bool { return alertFits(&a, []string{w}) }) {
			return fmt.Errorf("no alert matches %q; alerts that fire or are pending: %s", w, others)
		}
	}
	if len(*what) > 0 {
		v.Alerts.List = slices.DeleteFunc(v.Alerts.List, func(a status.Alert) bool { return !alertFits(&a, *what) })
	}
	return show(&view, stdout, v.Alerts, func(s *screen, list *status.Alerts) error {
		if len(list.List) == 0 && len(names) > 0 {
			s.paragraph("", "", fmt.Sprintf("No alert matches %s. Other alerts: %s.", strings.Join(*what, ", "), others))
			return nil
		}
		s.alerts(list, v.Time)
		return nil
	})
}

func alertFits(a *status.Alert, what []string) bool {
	names := slices.Collect(maps.Values(a.Labels))
	names = append(names, a.State, a.Labels["namespace"]+"/"+a.Labels["pod"])
	// The texts name the pods of a device.
	for word := range strings.FieldsFuncSeq(a.Summary+" "+a.Description, func(r rune) bool { return strings.ContainsRune(" ,;:", r) }) {
		if parts := strings.Split(strings.TrimRight(word, "."), "/"); len(parts) == 2 {
			names = append(names, parts[0]+"/"+parts[1], parts[1])
		}
	}
	return slices.ContainsFunc(what, func(w string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, w) }) ||
			len(w) > 3 && strings.HasPrefix(strings.ToLower(a.Device()), strings.ToLower(w))
	})
}

// alerts prints the alerts of the rules, which were found by now.
func (s *screen) alerts(list *status.Alerts, now time.Time) {
	for _, text := range list.Failing {
		s.paragraph(red, "", text)
	}
	switch {
	case list.Evaluated.IsZero():
		s.paragraph("", "", "The rules have not been evaluated yet.")
	case len(list.List) == 0:
		s.paragraph(green, "", "No alert fires or is pending.")
	}
	for i := range list.List {
		s.alert(&list.List[i], now)
	}
}

// alert prints an alert with what is known about it.
func (s *screen) alert(a *status.Alert, now time.Time) {
	color := map[string]string{"critical": red, "warning": yellow}[a.Severity()]
	when := a.State + " for " + status.Ago(now.Sub(a.Since))
	if a.State == "resolved" {
		when = "resolved " + status.Ago(now.Sub(a.Since)) + " ago"
	}
	fmt.Fprintf(s, "%s %s\n", s.paint(color, clean(a.Severity()+" "+a.Name())), s.paint(faint, when))
	var about []string
	for _, name := range []string{"device", "namespace", "workload", "pod", "reason"} {
		if v := a.Labels[name]; v != "" {
			about = append(about, name+" "+v)
		}
	}
	for _, text := range []string{a.Summary, strings.Join(about, ", "), a.Description, s.link(a.Runbook)} {
		s.paragraph("", "    ", text)
	}
}

// status returns the alerts as the status page and the commands show them, nil without
// rules.
func (a *alerts) status() *status.Alerts {
	if a == nil {
		return nil
	}
	report := a.engine.Report()
	out := &status.Alerts{Evaluated: report.Time}
	var list []engine.Alert
	for _, g := range report.Groups {
		out.Rules += len(g.Rules)
		for _, rule := range g.Rules {
			list = append(list, rule.Alerts...)
			if rule.LastError != "" {
				out.Failing = append(out.Failing, "rule "+rule.Name+" fails: "+rule.LastError)
			}
			if rule.Health == engine.HealthSkipped {
				out.Skipped++
			}
		}
	}
	slices.SortStableFunc(list, func(x, y engine.Alert) int {
		return cmp.Or(cmp.Compare(x.Urgency(), y.Urgency()), x.ActiveAt.Compare(y.ActiveAt))
	})
	for _, x := range list {
		shown := status.Alert{Labels: x.Labels, Summary: x.Annotations["summary"], Description: x.Annotations["description"], Runbook: x.Annotations["runbook_url"]}
		switch {
		case x.Labels["severity"] == "none":
			continue // the sign of life
		case x.State == engine.Firing:
			shown.State, shown.Since = "firing", x.FiredAt
			out.Firing++
		case x.State == engine.Pending:
			shown.State, shown.Since = "pending", x.ActiveAt
			out.Pending++
		default:
			shown.State, shown.Since = "resolved", x.ResolvedAt
		}
		out.List = append(out.List, shown)
	}
	return out
}
