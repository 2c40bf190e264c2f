package incidents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Arrival is one alert of one notification of Alertmanager's.
type Arrival struct {
	// At is when it arrived, in the time of the play.
	At          time.Duration
	Resolved    bool
	Labels      map[string]string
	Annotations map[string]string
}

// Notice is a notification of a receiver of the shipped configuration that has an
// alert which did not fire in the one before.
type Notice struct {
	At     time.Duration
	Alerts []Arrival // the new ones
}

// Outcome is what became of an expected alert.
type Outcome string

// The outcomes. All but Caught count as missed.
const (
	Caught     Outcome = "caught"
	Missed     Outcome = "missed"
	Late       Outcome = "late"
	WrongLabel Outcome = "wrong label"
	// WrongText is an alert whose annotations lack a required text.
	WrongText Outcome = "wrong text"
	// Unresolved did not resolve in time; Resolved did, and must not have.
	Unresolved Outcome = "unresolved"
	Resolved   Outcome = "resolved"
)

// Finding is what became of one expectation.
type Finding struct {
	Want    Expectation
	Outcome Outcome
	// ToPage is the time from the cause to the arrival, where it arrived.
	ToPage time.Duration
	// Detail is what arrived instead.
	Detail   string
	critical bool
}

// Verdict is what became of one incident.
type Verdict struct {
	Incident *Incident
	Findings []Finding
	// False are the alerts that must not have arrived, each once.
	False []Arrival
	// Pages and Tickets are what reached the pager and the tickets.
	Pages, Tickets []Notice
	// Err is why it could not be played to its end.
	Err error
}

// Good reports whether all that must arrive did, and nothing else.
func (v *Verdict) Good() bool {
	return v.Err == nil && len(v.False) == 0 && v.pagesWrong() == 0 && v.ticketsWrong() == 0 && !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Outcome != Caught })
}

// pagesWrong is how many pages there are too many, or, below 0, too few.
func (v *Verdict) pagesWrong() int {
	critical := slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.critical })
	switch n := len(v.Pages); {
	case v.Incident.Pages > 0:
		return n - v.Incident.Pages
	case critical || n > 1:
		return n - 1
	}
	return 0
}

// ticketsWrong is how many tickets there are too many, or, below 0, too few.
func (v *Verdict) ticketsWrong() int {
	if v.Incident.Tickets == 0 {
		return 0
	}
	return len(v.Tickets) - v.Incident.Tickets
}

// Judge compares what arrived, in the order of arrival, with what the incident
// states.
func Judge(i *Incident, arrivals []Arrival, pages, tickets []Notice) *Verdict {
	v := &Verdict{Incident: i, Pages: pages, Tickets: tickets}
	for _, e := range i.Expect {
		v.Findings = append(v.Findings, judge(e, arrivals))
	}
	seen := map[string]bool{}
	for _, a := range arrivals {
		if a.Resolved || !i.isFalse(a) || seen[key(a.Labels)] {
			continue
		}
		seen[key(a.Labels)] = true
		v.False = append(v.False, a)
	}
	return v
}

// isFalse reports whether the alert must not have arrived.
func (i *Incident) isFalse(a Arrival) bool {
	is := func(p Pattern) bool { return p.Matches(a.Labels) }
	switch {
	case slices.ContainsFunc(i.Never, is):
		return true
	case slices.ContainsFunc(i.Allow, is), a.Labels["severity"] == "info":
		return false
	}
	return !slices.ContainsFunc(i.Expect, func(e Expectation) bool {
		return e.pattern().Matches(a.Labels) && a.At >= e.Since
	})
}

// Matches reports whether an alert with these labels is meant.
func (p Pattern) Matches(labels map[string]string) bool {
	if labels["alertname"] != p.Alert {
		return false
	}
	for name, value := range p.Labels {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func (e *Expectation) pattern() Pattern { return Pattern{e.Alert, e.Labels} }

func judge(e Expectation, arrivals []Arrival) Finding {
	f := Finding{Want: e, Outcome: Missed}
	var first *Arrival
	open := map[string]bool{}
	resolved := false // before the time for it
	for n, a := range arrivals {
		if a.Labels["alertname"] != e.Alert || a.At < e.Since && !a.Resolved {
			continue
		}
		if !e.pattern().Matches(a.Labels) {
			if first == nil && !a.Resolved {
				f.Outcome, f.Detail = WrongLabel, "it has "+differing(e.Labels, a.Labels)
			}
			continue
		}
		if first == nil {
			if a.Resolved {
				continue // of an earlier cause
			}
			first = &arrivals[n]
			f.ToPage = a.At - e.Since
			f.critical = a.Labels["severity"] == "critical"
		}
		if e.Resolves.By > 0 && a.At > e.Resolves.By {
			continue
		}
		if a.Resolved {
			delete(open, key(a.Labels))
			resolved = true
		} else {
			open[key(a.Labels)] = true
		}
	}
	if first == nil {
		return f
	}
	f.Outcome, f.Detail = Caught, ""
	switch text := lacking(e.Annotations, first.Annotations); {
	case first.At > e.By:
		f.Outcome, f.Detail = Late, fmt.Sprintf("arrived at %s", round(first.At))
	case text != "":
		f.Outcome, f.Detail = WrongText, text
	case e.Resolves.Never && resolved:
		f.Outcome, f.Detail = Resolved, "it must not resolve within the play"
	case e.Resolves.By > 0 && len(open) > 0:
		f.Outcome, f.Detail = Unresolved, fmt.Sprintf("it must by %s", e.Resolves.By)
	}
	return f
}

// differing lists what an alert has in place of the labels that it should.
func differing(want, have map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] != want[name] {
			parts = append(parts, fmt.Sprintf("%s=%q", name, have[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// lacking names the annotation without its required text.
func lacking(want, have map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !strings.Contains(have[name], want[name]) {
			return fmt.Sprintf("its %s is %q, without %q", name, have[name], want[name])
		}
	}
	return ""
}

// key is the identity of an alert.
func key(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s=%q,", name, labels[name])
	}
	return b.String()
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
