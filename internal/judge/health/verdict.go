package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// blind is the severity of a device that cannot be observed. It is worse than
// Degraded, because the state may have become worse, and milder than Failed,
// because a failed device does not recover without being observed.
const blind = unset

// NoAnswer is the reason of a device that no source can read.
const NoAnswer = "no_answer"

// NoFaultSource is the reason of an FPGA whose driver has no sign of a fault to read, and
// of an AMD GPU without error counters on a node whose kernel log is not read.
const NoFaultSource = "no_fault_source"

// The states of a device, in the order of accel_device_health.
var states = []string{"healthy", "degraded", "failed", "unknown"}

// The order of precedence among findings of one severity.
const (
	rankDriver = iota
	rankEvent
	rankReading
	rankBlind
)

// finding is one reason against the health of a device in one Snapshot. Equal
// findings give an equal verdict.
type finding struct {
	collector.Reason
	severity Severity
	action   Action
	rank     uint8
	fault    *fault // of an event
}

func newFinding(code, text string, severity Severity, action Action, rank uint8, since time.Time) finding {
	return finding{
		Reason:   collector.Reason{Code: code, Text: text, Brief: words(code), Severity: stateOf(severity), Action: action.String(), Since: since},
		severity: severity, action: action, rank: rank,
	}
}

func (f *finding) gravity() int {
	if f.severity == blind {
		return 2*int(Failed) - 1
	}
	return 2 * int(f.severity)
}

func graver(a, b finding) int {
	return cmp.Or(b.gravity()-a.gravity(), int(a.rank)-int(b.rank), a.Since.Compare(b.Since), strings.Compare(a.Code, b.Code))
}

// conclude sets the verdict of d from the findings.
func (st *device) conclude(found []finding, now time.Time, d *collector.Device) {
	slices.SortFunc(found, graver)
	for i := range found {
		found[i].Since = collector.OnClock(found[i].Since, now)
	}
	since := now
	if st.verdict != nil {
		since = collector.OnClock(st.verdict.Since, now)
		if since == st.verdict.Since && slices.Equal(st.findings, found) {
			return
		}
	}
	st.findings = append(st.findings[:0], found...)
	v := &collector.Verdict{State: "healthy", Action: recommended(found).String(), Since: now}
	if len(found) > 0 {
		v.State = stateOf(found[0].severity)
	}
	if st.verdict != nil && st.verdict.State == v.State {
		v.Since = since
	}
	st.reasons = make([][]string, len(found))
	for i := range found {
		f := &found[i]
		v.Reasons = append(v.Reasons, f.Reason)
		if f.fault != nil && d.Parent == "" {
			v.Faults = append(v.Faults, f.fault.latest(d.ID))
		}
		st.reasons[i] = []string{f.Code, f.Severity}
	}
	st.verdict = v
	switch {
	case v.State == "healthy":
		st.failing = false
	case v.State == "failed" && !st.failing:
		st.failing = true
		st.failures++
	}
}

func stateOf(s Severity) string {
	if s == blind {
		return "unknown"
	}
	return s.String()
}

// recommended returns the action for the findings, which are sorted gravest
// first: the driver's if there is one, else the most expensive of the gravest.
func recommended(found []finding) Action {
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

// acronyms are the words of reasons that are not written in lower case.
var acronyms = map[string]string{
	"aer": "AER", "dram": "DRAM", "ecc": "ECC", "fpga": "FPGA", "inforom": "InfoROM", "mig": "MIG", "nvlink": "NVLink",
	"pci": "PCI", "pcie": "PCIe", "sram": "SRAM", "xgmi": "XGMI",
}

// words returns the words of a reason or of a kind of event.
func words(code string) string {
	list := strings.Split(code, "_")
	for i, w := range list {
		list[i] = cmp.Or(acronyms[w], w)
	}
	return strings.Join(list, " ")
}

// brief has the labels that a text shows, and for a limit the value with which it was
// first exceeded, which takes less room than the name of the limit.
func (t *test) brief(hit *hit, first *conditionState) string {
	s := words(t.Reason)
	if t.Kind == collector.ReasonLimit && t.Than != "" {
		s = strings.TrimSuffix(strings.TrimSuffix(s, " critical"), " shutdown")
	}
	for i := range min(len(t.Show), len(hit.show)) {
		if hit.show[i] == "" {
			continue
		}
		s += " "
		if t.Show[i] == "link" || t.Show[i] == "bank" {
			s += t.Show[i] + " "
		}
		s += cmp.Or(acronyms[hit.show[i]], hit.show[i])
	}
	switch {
	case t.Kind != collector.ReasonLimit:
	case t.Than != "":
		s += fmt.Sprintf(" at %.4g, limit %.4g", first.value, first.limit)
	case t.Test == "below":
		s += fmt.Sprintf(", margin %.4g", first.value)
	}
	return s + t.more(hit)
}

func (t *test) more(hit *hit) string {
	if hit.n > 1 && len(t.Show) > 0 {
		return fmt.Sprintf(" and %d more", hit.n-1)
	}
	return ""
}

func (t *test) message(hit *hit) string {
	var shown []string
	for i := range min(len(t.Show), len(hit.show)) {
		if hit.show[i] != "" {
			shown = append(shown, t.Show[i]+" "+hit.show[i])
		}
	}
	if len(shown) == 0 {
		return t.Text
	}
	return t.Text + ": " + strings.Join(shown, ", ") + t.more(hit)
}

func (f *fault) message(overruled bool) string {
	s := f.text
	if f.n > 1 {
		s += fmt.Sprintf("; %d times, the last at %s", f.n, f.last.UTC().Format(time.RFC3339))
	}
	if f.past {
		s += "; logged before the start of the exporter"
	}
	if overruled {
		s += "; the driver lets work continue"
	}
	return s
}

// publish adds the verdict and its families to the device. begin is since when the faults
// of events are known, zero for ever.
func (st *device) publish(d *collector.Device, begin time.Time) {
	v := st.verdict
	d.Verdict = v
	r := d.Readings
	for _, state := range states {
		r = append(r, collector.Reading{Metric: collector.DeviceHealth, Labels: []string{state}, Value: boolValue(state == v.State)})
	}
	for _, labels := range st.reasons {
		r = append(r, collector.Reading{Metric: collector.DeviceHealthReason, Labels: labels, Value: 1})
	}
	if d.Parent == "" {
		// A partition is repaired through its parent.
		for _, action := range actions[NoAction:] {
			r = append(r, collector.Reading{Metric: collector.DeviceAction, Labels: []string{action}, Value: boolValue(action == v.Action)})
		}
		r = append(r, collector.Reading{Metric: collector.DeviceFailures, Value: st.failures})
		if begin.After(st.ended) {
			r = append(r, collector.Reading{Metric: collector.FaultsUnknown, Value: float64(begin.Unix())})
		}
	}
	d.Readings = r
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
