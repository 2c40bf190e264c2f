package engine

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// Print writes a Report as text: firing and pending alerts, the most urgent first, with
// what to do, their values and expressions, failing rules and the number of skipped
// rules.
func (r *Report) Print(w io.Writer) error {
	p := &printer{w: w, now: r.Time}
	if r.Time.IsZero() {
		p.line("no evaluation yet")
		return p.err
	}
	m := &r.Memory
	p.line("evaluated at %s; %d of %d series, %d of %d bytes of samples, back to %s", r.Time.UTC().Format(time.RFC3339), m.Series, m.SeriesLimit, m.Bytes, m.BytesLimit, m.OldestSample.UTC().Format(time.RFC3339))
	var found []ruled
	count := map[State]int{}
	skipped := map[Skip]int{}
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			if rule.Skipped != "" {
				skipped[rule.Skipped]++
			}
			if rule.LastError != "" {
				p.line("\n%s fails (%s:%d, group %s): %s", rule.Name, g.File, rule.Line, g.Name, rule.LastError)
			}
			for _, a := range rule.Alerts {
				count[a.State]++
				found = append(found, ruled{&rule, a})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y ruled) int { return cmp.Compare(x.alert.Urgency(), y.alert.Urgency()) })
	for i := range found {
		p.alert(found[i].rule, &found[i].alert)
	}
	p.line("\n%d firing, %d pending, %d lately resolved", count[Firing], count[Pending], count[Inactive])
	if n := skipped[SkipCluster]; n > 0 {
		p.line("%d rules compare several nodes: Prometheus evaluates them, an exporter does not", n)
	}
	if n := skipped[SkipRange]; n > 0 {
		p.line("%d rules look back further than the memory of this exporter: Prometheus evaluates them", n)
	}
	return p.err
}

// ruled is an alert and its rule.
type ruled struct {
	rule  *RuleState
	alert Alert
}

// Urgency is smaller for more urgent alerts: by state, then by severity.
func (a *Alert) Urgency() int {
	state := slices.Index([]State{Firing, Pending, Inactive}, a.State)
	severity := slices.Index([]string{"critical", "warning", "info"}, a.Labels["severity"])
	if severity < 0 {
		severity = 3
	}
	return 4*state + severity
}

type printer struct {
	w   io.Writer
	now time.Time
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) since(t time.Time) string {
	return fmt.Sprintf("since %s (%v)", t.UTC().Format(time.RFC3339), p.now.Sub(t).Round(time.Second))
}

func (p *printer) alert(rule *RuleState, a *Alert) {
	name := labels.FromMap(a.Labels)
	switch a.State {
	case Firing:
		p.line("\nfiring   %s %s", name, p.since(a.FiredAt))
	case Pending:
		p.line("\npending  %s %s, fires after %v", name, p.since(a.ActiveAt), time.Duration(rule.ForSeconds*float64(time.Second)))
	default:
		p.line("\nresolved %s %s", name, p.since(a.ResolvedAt))
		return
	}
	if !a.KeepFiringSince.IsZero() {
		p.line("  condition is over, kept firing %s", p.since(a.KeepFiringSince))
	}
	if summary := a.Annotations["summary"]; summary != "" {
		p.line("  %s", summary)
	}
	for _, name := range []string{"action", "runbook_url"} {
		if text := a.Annotations[name]; text != "" {
			p.line("  %s: %s", strings.TrimSuffix(name, "_url"), text)
		}
	}
	p.line("  value %v of", a.Value)
	p.line("    %s", strings.ReplaceAll(strings.TrimSpace(rule.Query), "\n", "\n    "))
}
