package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// Bounds of the page; the files have everything.
const (
	maxTextEvents = 30
	maxTextLog    = 40
	maxTextSeries = 40
)

// sections are the readings that the page has, by words of the names of their families.
var sections = []struct {
	title string
	words []string
}{ // a reading is in the first that fits
	{"Memory errors and repairs", []string{"_ecc_", "remap", "retired", "repair", "_ras_", "poison"}},
	{"Links", []string{"nvlink", "xgmi", "c2c", "fabric", "network_"}},
	{"PCIe, with the errors of AER", []string{"_pcie_"}},
	{"FPGA", []string{"_fpga_"}},
	{"Difference from the baseline", []string{"accel_drift"}},
	{"Temperature, power, clocks, use", []string{"temperature_celsius", "power_watts", "throttle", "clock_hertz", "utilization", "memory_used", "fan_"}},
}

// leftOut are parts of names of families that explain no fault: the traffic of a link, and
// the limits of a device.
var leftOut = []string{"_bytes_", "_max_", "_info", "accel_allocation", "_limit", "_bank_total_"}

// isWell matches families that are 1 where all is well.
var isWell = regexp.MustCompile(`_(up|responding|usable|valid|bound|enabled|loaded|calibrated)$`)

// usual reports whether a reading is as it is on a device without a fault: a count of 0, a
// state that does not apply, a link that is up.
func (s *Series) usual() bool {
	if isWell.MatchString(s.Metric) {
		return s.Value == 1
	}
	return s.Value == 0
}

// text returns the incident as a page for a person: README.txt.
func (in *Incident) text(log []string, logged, cper bool) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	var names []string
	for i := range in.Devices {
		names = append(names, cmp.Or(in.Devices[i].Summary, in.Devices[i].ID))
	}
	line("%s", strings.Join(names, "\n"))
	switch {
	case in.Requested:
		line("node %s, requested at %s from accel-exporter", in.Node, stamp(in.Written))
	case in.Complete:
		line("node %s, fault at %s, written by accel-exporter at %s", in.Node, stamp(in.Fault), stamp(in.Written))
	default:
		line("node %s, fault at %s, written by accel-exporter at %s: the minute after the fault is not complete", in.Node, stamp(in.Fault), stamp(in.Written))
	}
	for i := range in.Devices {
		if len(in.Devices) > 1 {
			line("\n== %s ==", names[i])
		}
		in.Devices[i].text(line, in.Software)
	}
	lines := last(log, maxTextLog, "kernel.log")
	if !logged {
		lines = ": the log is not read"
	}
	line("\nKERNEL LOG: lines of drivers and of the PCI core%s", lines)
	for _, l := range log[max(0, len(log)-maxTextLog):] {
		line("  %s", l)
	}
	line("\nFILES")
	line("  incident.json       this page for programs, with every reading and event")
	line("  readings/ID.csv     every second of the ten minutes before, and after the fault; an empty cell was not measured")
	line("  kernel.log          lines of drivers and of the PCI core")
	if cper {
		line("  cper/ID-N.bin       error records of the driver as they are: UEFI Common Platform Error Records (cper-convert decodes them)")
	}
	line("  node.json           the other devices of the node, and the sources of the exporter")
	line("  MANIFEST.json       SHA-256 of each file")
	line("  accel-exporter bundle FILE prints this page and checks the files.")
	return b.Bytes()
}

func (d *Device) text(line func(string, ...any), software []Fact) {
	line("\nFOR THE VENDOR")
	for _, f := range append(slices.Clone(d.Facts), software...) {
		line("  %-24s %s", f.Name, cmp.Or(f.Value, "unknown"))
	}
	if faults := d.faults(); len(faults) > 0 {
		line("  %-24s %s", "errors", strings.Join(faults, ", "))
	}
	for i := range d.Events {
		if d.Events[i].Detail != "" && !d.Events[i].Past {
			line("  %-24s %s", "first message", d.Events[i].Detail)
			break
		}
	}
	line("\nWHAT HAPPENED")
	if d.AtFault != nil {
		verdictText(line, d.AtFault)
		line("  Then:")
	}
	if d.Verdict == nil {
		line("  The device is gone.")
	} else {
		verdictText(line, d.Verdict)
	}
	if d.Down != "" {
		line("  %s.", status.Down(d.Down))
	}
	line("\nWHO HAD THE DEVICE")
	for _, h := range d.Holders {
		line("  pod %s/%s, %s since %s", h.Namespace, h.Pod, strings.Join(h.Containers, ", "), stamp(h.Since))
	}
	for _, pod := range d.Pods {
		if !slices.ContainsFunc(d.Holders, func(h Holder) bool { return h.Namespace+"/"+h.Pod == pod }) {
			line("  pod %s, before", pod)
		}
	}
	if len(d.Holders)+len(d.Pods) == 0 {
		line("  No pod is known.")
	}
	if v := d.Verdict; v != nil {
		line("\nWHAT TO DO")
		line("  %s.", cmp.Or(status.Action(v.Action), "Nothing"))
		if page := status.Runbook(v.State, d.Down, v.Action); page != "" {
			line("  %s", status.Docs+page)
		}
	}
	line("\nEVENTS%s", last(d.Events, maxTextEvents, incidentName))
	for i := range d.Events[max(0, len(d.Events)-maxTextEvents):] {
		e := &d.Events[max(0, len(d.Events)-maxTextEvents)+i]
		line("  %s %s: %s", stamp(e.Time), status.EventName(e), cmp.Or(e.Detail, "reported by "+e.Source))
	}
	d.readings(line)
}

func verdictText(line func(string, ...any), v *collector.Verdict) {
	line("  %s since %s", v.State, stamp(v.Since))
	for i := range v.Reasons {
		r := &v.Reasons[i]
		line("  - %s: %s (%s, since %s)", r.Severity, r.Text, r.Code, stamp(r.Since))
		if action := status.Action(r.Action); action != "" {
			line("    %s.", action)
		}
	}
}

// readings prints the readings that may explain a fault.
func (d *Device) readings(line func(string, ...any)) {
	contains := func(r Series) func(string) bool {
		return func(part string) bool { return strings.Contains(r.Metric, part) }
	}
	left := slices.Clone(d.Readings)
	for _, section := range sections {
		title, shown := section.title, 0
		left = slices.DeleteFunc(left, func(r Series) bool {
			if !slices.ContainsFunc(section.words, contains(r)) {
				return false
			}
			if r.usual() || slices.ContainsFunc(leftOut, contains(r)) {
				return true
			}
			if shown++; shown == 1 {
				line("\n%s", strings.ToUpper(title))
			}
			when := ""
			if !r.At.IsZero() {
				when = " (at " + stamp(r.At) + ", not measured since)"
			}
			switch {
			case shown <= maxTextSeries:
				line("  %s %s%s", r.String(), strconv.FormatFloat(r.Value, 'f', -1, 64), when)
			case shown == maxTextSeries+1:
				line("  … more in %s", incidentName)
			}
			return true
		})
	}
}

// faults are the kinds of the events of a device, each once, or the reasons of its verdict
// without events.
func (d *Device) faults() (names []string) {
	for i := range d.Events {
		if n := status.EventName(&d.Events[i]); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if v := d.Verdict; v != nil && len(names) == 0 {
		for i := range v.Reasons {
			names = append(names, v.Reasons[i].Code)
		}
	}
	return names
}

// last says how many of a list the page has.
func last[T any](list []T, limit int, file string) string {
	switch {
	case len(list) == 0:
		return ": none"
	case len(list) > limit:
		return fmt.Sprintf(": the last %d of %d, all in %s", limit, len(list), file)
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.DateTime + "Z") }
