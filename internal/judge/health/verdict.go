package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// blind is the severity of not being able to look. It goes before Degraded,
// since what is seen no more may have become worse, and after Failed, since
// what was failed does not become better unseen.
const blind = unsaid

// nobodyAnswers is the code of the reason of a device that no source reads.
const nobodyAnswers = "nobody_answers"

// The states of a device, in the order of accel_device_health.
var states = []string{"healthy", "degraded", "failed", "unknown"}

// The order of authority among findings of one severity.
const (
	rankDriver = iota
	rankEvent
	rankReading
	rankBlind
)

// finding is one fact that speaks against a device in one Snapshot. Equal
// findings make an equal verdict.
type finding struct {
	reason    string
	severity  Severity
	action    Action
	rank      uint8
	overruled bool
	since     time.Time
	text      string
	fault     *fault
	test      *test
	n         int
	show      [2]string
}

func (f *finding) gravity() int {
	if f.severity == blind {
		return 2*int(Failed) - 1
	}
	return 2 * int(f.severity)
}

func graver(a, b finding) int {
	return cmp.Or(b.gravity()-a.gravity(), int(a.rank)-int(b.rank), a.since.Compare(b.since), strings.Compare(a.reason, b.reason))
}

// conclude makes d's verdict of what was found.
func (st *device) conclude(found []finding, now time.Time, d *collector.Device) {
	slices.SortFunc(found, graver)
	if st.verdict != nil && slices.Equal(st.findings, found) {
		return
	}
	st.findings = append(st.findings[:0], found...)
	v := &collector.Verdict{State: "healthy", Action: demand(found).String(), Since: now}
	if len(found) > 0 {
		v.State = stateOf(found[0].severity)
	}
	if st.verdict != nil && st.verdict.State == v.State {
		v.Since = st.verdict.Since
	}
	st.reasons = make([][]string, len(found))
	for i := range found {
		f := &found[i]
		r := collector.Reason{Code: f.reason, Text: f.say(), Severity: stateOf(f.severity), Action: f.action.String(), Since: f.since}
		v.Reasons = append(v.Reasons, r)
		st.reasons[i] = []string{r.Code, r.Severity}
	}
	st.verdict = v
	if d.Parent == "" {
		st.outage.note(v.State, d.ID, now)
	}
}

func stateOf(s Severity) string {
	if s == blind {
		return "unknown"
	}
	return s.String()
}

// demand returns the action that the findings, gravest first, ask for: the
// driver's own, else the heaviest among the gravest.
func demand(found []finding) Action {
	act := NoAction
	gravest := -1
	for i := range found {
		f := &found[i]
		if f.rank == rankDriver {
			return f.action
		}
		if f.severity == blind {
			continue
		}
		if gravest < 0 {
			gravest = f.gravity()
		}
		if f.gravity() == gravest {
			act = max(act, f.action)
		}
	}
	return act
}

// say is the text of the reason.
func (f *finding) say() string {
	switch {
	case f.fault != nil:
		return f.fault.say(f.overruled)
	case f.test != nil:
		return f.test.say(f)
	}
	return f.text
}

func (f *fault) say(overruled bool) string {
	s := f.text
	if f.n > 1 {
		s += fmt.Sprintf("; %d times, the last at %s", f.n, f.last.UTC().Format(time.RFC3339))
	}
	if f.past {
		s += "; from the log of before the start"
	}
	if overruled {
		s += "; the driver asks for nothing"
	}
	return s
}

func (t *test) say(f *finding) string {
	s := t.Text
	var shown []string
	for i := range min(len(t.Show), len(f.show)) {
		if f.show[i] != "" {
			shown = append(shown, t.Show[i]+" "+f.show[i])
		}
	}
	if len(shown) > 0 {
		s += ": " + strings.Join(shown, ", ")
	}
	if f.n > 1 && len(shown) > 0 {
		s += fmt.Sprintf(" and %d more", f.n-1)
	}
	return s
}
