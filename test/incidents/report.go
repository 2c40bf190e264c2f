package incidents

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Alert describes an alert of the rule files.
type Alert struct {
	// Group is the name of its group.
	Group string
	// For is the wait between condition and alert.
	For time.Duration
	// Severity is its label.
	Severity string
}

// verdicts is the group whose alerts repeat what the exporter has concluded.
const verdicts = "accel-incidents"

// atOnce reports whether the alert follows an event or a reading without its
// own wait or window.
func (a Alert) atOnce() bool { return a.For == 0 && a.Group == verdicts }

// Report is what became of a corpus.
type Report struct {
	Verdicts []*Verdict
	// Alerts has every alert of the rules by its name, with its times as they
	// are.
	Alerts map[string]Alert
	// Factor is what times were divided by.
	Factor int
}

// Good reports whether every verdict is, and no more pages arrived than deserved.
func (r *Report) Good() bool {
	return r.pages() <= r.deserved() && !slices.ContainsFunc(r.Verdicts, func(v *Verdict) bool { return !v.Good() })
}

func (r *Report) pages() (n int) {
	for _, v := range r.Verdicts {
		n += len(v.Pages)
	}
	return n
}

// deserved is how many pages the incidents deserve: one each where an expected alert
// is critical, or as many as they state.
func (r *Report) deserved() (n int) {
	for _, v := range r.Verdicts {
		if slices.ContainsFunc(v.Incident.Expect, func(e Expectation) bool { return r.Alerts[e.Alert].Severity == "critical" }) {
			n += max(v.Incident.Pages, 1)
		}
	}
	return n
}

// Line writes a verdict: one line, and one more for each thing that is wrong.
func (v *Verdict) Line(w io.Writer) error {
	word := "ok  "
	if !v.Good() {
		word = "FAIL"
	}
	caught := 0
	for _, f := range v.Findings {
		if f.Outcome == Caught {
			caught++
		}
	}
	line := fmt.Sprintf("%s  %-34s caught %d of %d, false %d", word, v.Incident.Name, caught, len(v.Findings), len(v.False))
	if v.Incident.Healthy() {
		line = fmt.Sprintf("%s  %-34s healthy, false %d", word, v.Incident.Name, len(v.False))
	}
	line += fmt.Sprintf(", pages %d, tickets %d", len(v.Pages), len(v.Tickets))
	if v.Err != nil {
		line += fmt.Sprintf(": %v", v.Err)
	}
	line += "\n"
	for _, f := range v.Findings {
		if f.Outcome == Caught {
			continue
		}
		line += fmt.Sprintf("      %s: %s", f.Outcome, f.Want.pattern())
		if f.Detail != "" {
			line += ": " + f.Detail
		}
		line += "\n"
	}
	for _, a := range v.False {
		line += fmt.Sprintf("      false: at %s %s (%s)", round(a.At), about(a.Labels), a.Labels["severity"])
		if summary := a.Annotations["summary"]; summary != "" {
			line += ": " + summary
		}
		line += "\n"
	}
	line += surplus("page", v.pagesWrong(), v.Pages) + surplus("ticket", v.ticketsWrong(), v.Tickets)
	_, err := io.WriteString(w, line)
	return err
}

// surplus lists notifications if there are too many or too few of them.
func surplus(kind string, wrong int, notices []Notice) string {
	if wrong == 0 {
		return ""
	}
	lines := fmt.Sprintf("      %ss: %+d\n", kind, wrong)
	for _, n := range notices {
		for _, a := range n.Alerts {
			lines += fmt.Sprintf("      %s: at %s %s\n", kind, round(n.At), about(a.Labels))
		}
	}
	return lines
}

// about names an alert and its subject.
func about(labels map[string]string) Pattern {
	p := Pattern{Alert: labels["alertname"], Labels: map[string]string{}}
	for _, name := range []string{"device", "namespace", "workload", "source", "component"} {
		if labels[name] != "" {
			p.Labels[name] = labels[name]
		}
	}
	return p
}

// Print writes the sums: what was caught, what was not, and the time to page.
func (r *Report) Print(w io.Writer) error {
	outcomes := map[Outcome]int{}
	failed, healthy, quiet, wrong, broken, doubled, tickets := 0, 0, 0, 0, 0, 0, 0
	var atOnce, waited []time.Duration
	for _, v := range r.Verdicts {
		wrong += len(v.False)
		tickets += len(v.Tickets)
		doubled += max(0, v.pagesWrong())
		if v.Err != nil {
			broken++
		}
		if v.Incident.Healthy() {
			healthy++
			if v.Good() {
				quiet++
			}
		} else if !v.Good() {
			failed++
		}
		for _, f := range v.Findings {
			outcomes[f.Outcome]++
			switch {
			case f.Outcome == Missed || f.Outcome == WrongLabel:
			case r.Alerts[f.Want.Alert].atOnce():
				atOnce = append(atOnce, f.ToPage)
			default:
				waited = append(waited, f.ToPage)
			}
		}
	}
	total := 0
	for _, n := range outcomes {
		total += n
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nincidents\t%d, of which %d not as stated\n", len(r.Verdicts)-healthy, failed)
	fmt.Fprintf(t, "healthy days\t%d, of which %d silent\n", healthy, quiet)
	if broken > 0 {
		fmt.Fprintf(t, "not played to the end\t%d\n", broken)
	}
	fmt.Fprintf(t, "caught\t%d of %d alerts\n", outcomes[Caught], total)
	for _, o := range []Outcome{Missed, Late, WrongLabel, WrongText, Unresolved, Resolved} {
		fmt.Fprintf(t, "%s\t%d\n", o, outcomes[o])
	}
	fmt.Fprintf(t, "false\t%d\n", wrong)
	fmt.Fprintf(t, "pages\t%d, of which %d doubled; the incidents deserve %d\n", r.pages(), doubled, r.deserved())
	fmt.Fprintf(t, "tickets\t%d\n", tickets)
	fmt.Fprintf(t, "time to page, verdicts that do not wait\t%s\n", spread(atOnce))
	fmt.Fprintf(t, "time to page, the others, played\t%s; 1s stands for %s\n", spread(waited), time.Duration(r.Factor)*time.Second)
	return t.Flush()
}

// spread returns the distribution of times in one line.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	slices.Sort(times)
	// The smallest that at least p in a hundred do not exceed.
	at := func(p int) time.Duration { return round(times[max((p*len(times)+99)/100, 1)-1]) }
	return fmt.Sprintf("min %s, median %s, p90 %s, p99 %s, max %s of %d", at(0), at(50), at(90), at(99), at(100), len(times))
}
