package main

import (
	"cmp"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// printWho prints a report: the state of the sources, and a line for each
// allocation or, without a kubelet, for each process. Devices without one have a
// line too.
func printWho(s *screen, r *whoReport, wide bool) error {
	t := &whoTable{s: s, now: r.Time, wide: wide, processes: r.State == podmap.StateAbsent}
	printSources(s, r.Sources)
	if len(r.Devices) == 0 {
		fmt.Fprintln(s, "No accelerator was found on this node.")
		return nil
	}
	t.columns = []column{{title: "INDEX"}, {title: "DEVICE"}, {title: "MODEL", least: 8, rank: 2}, {title: "HEALTH", least: 8, color: healthColor}}
	if t.processes {
		t.columns = append(t.columns, column{title: "PID"}, column{title: "USER"}, column{title: "COMMAND", least: 8}, column{title: "SLURM JOB"}, column{title: "USE"}, column{title: "MEMORY"})
	} else {
		t.columns = append(t.columns, column{title: "POD", least: 20}, column{title: "FOR", rank: 1}, column{title: "USE"}, column{title: "MEMORY"}, column{title: "IDLE", least: 6})
	}
	order(r.Devices)
	for i := range r.Devices {
		d := &r.Devices[i]
		above := len(t.rows)
		if t.processes {
			t.users(d, r.local)
		} else {
			t.device(d)
		}
		t.rows[above].trouble(d)
	}
	t.print(s)
	var remarks []string
	if text := r.Uncertain(); text != "" {
		remarks = append(remarks, text)
	}
	for i := range r.Unattributed {
		if p := &r.Unattributed[i]; !t.processes {
			remarks = append(remarks, p.Sentence(t.id(p.Device)))
		}
	}
	for i := range r.Unresolved {
		remarks = append(remarks, r.Unresolved[i].Sentence())
	}
	if len(remarks) > 0 {
		fmt.Fprintln(s)
	}
	for _, text := range remarks {
		s.paragraph("", "", text)
	}
	return nil
}

// printSources prints the sources that are not well, each with its error and what to
// do.
func printSources(s *screen, sources []sourceJSON) {
	printed := false
	for i := range sources {
		x := &sources[i]
		state, color, trouble := strings.ReplaceAll(x.Reason, "_", " "), red, status.Explain(x.Source, x.Reason)
		switch {
		case x.Up && x.Err == "", x.Reason == collector.SourceAbsent && slices.ContainsFunc(sources, func(o sourceJSON) bool { return o.Up }):
			continue
		case x.Up:
			state, color, trouble = "read in part", yellow, status.Trouble{}
		case x.Released:
			color, x.Err = yellow, trouble.Meaning
			if x.ReleasedUntil != nil {
				x.Err += " It is attached again at " + x.ReleasedUntil.Local().Format(time.TimeOnly) + " at the latest."
			}
		case x.Reason == collector.SourceAbsent, x.Reason == collector.SourceStarting:
			color = ""
		}
		s.paragraph(color, "", x.Source+" "+state+": "+cmp.Or(x.Err, trouble.Meaning))
		s.remedy(trouble.Cure, trouble.Doc)
		printed = true
	}
	if printed {
		fmt.Fprintln(s)
	}
}

func healthColor(state string) string {
	switch state, _, _ := strings.Cut(state, ":"); state {
	case "healthy":
		return green
	case "degraded":
		return yellow
	case "failed", "down":
		return red
	}
	return ""
}

// users adds a line for each process on a device.
func (t *whoTable) users(d *allocation.Device, local bool) {
	first := t.first(d)
	if len(d.ProcessList) == 0 {
		none := "?" // unknown
		if d.Processes != nil || d.Availability == allocation.Partitioned {
			none = "-"
		}
		t.add("", append(first, none, "", "", "", percent(d.Utilization), memory(d.MemoryUsed, d.MemoryTotal))...)
		return
	}
	for i := range d.ProcessList {
		p := &d.ProcessList[i]
		if i > 0 {
			first = []string{"", "", "", ""}
		}
		total := d.MemoryTotal
		if len(d.ProcessList) > 1 {
			total = nil
		}
		t.add("", append(first, strconv.Itoa(p.PID), userOf(p.UID, local), cmp.Or(p.Command, "?"), p.Job, percent(p.Utilization), memory(p.MemoryUsed, total))...)
	}
	if n := *d.Processes - len(d.ProcessList); n > 0 {
		t.add("", "", "", "", "", fmt.Sprintf("and %d more", n), "", "", "", "", "")
	}
}

// userOf returns the name of a user of this machine, else the number.
func userOf(uid string, local bool) string {
	if u, err := user.LookupId(uid); local && err == nil {
		return u.Username
	}
	return cmp.Or(uid, "?")
}

// order sorts devices by urgency, class and number, partitions behind their device.
func order(devices []allocation.Device) {
	type key struct {
		class  string
		number int
		pci    string
	}
	keys, urgent := map[string]key{}, map[string]int{}
	top := func(d *allocation.Device) string { return cmp.Or(d.Parent, d.ID) }
	for i := range devices {
		d := &devices[i]
		urgent[top(d)] = min(urgent[top(d)], urgency(d))
		n, err := strconv.Atoi(d.Index)
		if err != nil {
			n = 1 << 30
		}
		keys[d.ID] = key{d.Class, n, d.PCI}
	}
	slices.SortStableFunc(devices, func(a, b allocation.Device) int {
		x, y := top(&a), top(&b)
		kx, ky := keys[x], keys[y]
		return cmp.Or(
			cmp.Compare(urgent[x], urgent[y]),
			-cmp.Compare(kx.class, ky.class), // GPUs before FPGAs
			cmp.Compare(kx.number, ky.number),
			cmp.Compare(kx.pci, ky.pci),
			cmp.Compare(x, y),
			cmp.Compare(a.Parent, b.Parent), // none comes first
			cmp.Compare(keys[a.ID].number, keys[b.ID].number),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// urgency is smaller for a device that needs attention sooner, 0 for one that needs
// none.
func urgency(d *allocation.Device) int {
	switch {
	case d.Health == "failed", d.Health == "" && d.Down != "":
		return -3
	case d.Health == "degraded":
		return -2
	case d.Health == "unknown":
		return -1
	}
	return 0
}

type whoTable struct {
	table
	s    *screen
	now  time.Time
	wide bool
	// processes: there is no kubelet, so a line is of a process.
	processes bool
}

// first returns the cells of the device itself.
func (t *whoTable) first(d *allocation.Device) []string {
	index, model := cmp.Or(d.Index, "-"), modelOf(d)
	if d.Parent != "" {
		index = "  └"
	}
	if t.wide && d.PCI != "" && d.Parent == "" {
		model += " " + d.PCI
	}
	return []string{index, t.id(d.ID), model, verdictOf(d)}
}

// modelOf returns the profile of a partition, else the model.
func modelOf(d *allocation.Device) string {
	model := strings.TrimPrefix(cmp.Or(d.Model, d.Class), "NVIDIA ")
	if d.Parent != "" {
		return cmp.Or(d.Profile, model)
	}
	return model
}

func (t *whoTable) device(d *allocation.Device) {
	first := t.first(d)
	if len(d.Holders) == 0 {
		why := d.Why
		if why == "not allocated" {
			why = "" // "(free)" has it
		}
		t.add(why, append(first, "("+availability(d)+")", "", percent(d.Utilization), memory(d.MemoryUsed, d.MemoryTotal), "")...)
		return
	}
	for i := range d.Holders {
		h := &d.Holders[i]
		if i > 0 {
			first = []string{"", "", "", ""}
		}
		holder := h.Namespace + "/" + h.Pod
		if t.wide {
			holder += " [" + strings.Join(h.Containers, ",") + "] " + strings.Join(h.Resources, ",")
		}
		held := t.since(h.Since)
		if h.SinceAtLeast {
			held = "≥" + held
		}
		total := d.MemoryTotal
		if h.Shared {
			total = nil
		}
		about := h.Notes()
		if i == 0 && len(d.NotAllocatable) > 0 {
			about = append(about, "not allocatable again as "+strings.Join(d.NotAllocatable, ", "))
		}
		for _, f := range h.Faults {
			about = append(about, fmt.Sprintf("%s at %s", f.Name, f.Time.Format(time.TimeOnly)))
		}
		t.add(strings.Join(about, "; "), append(slices.Clone(first), holder, held, percent(h.Utilization), memory(h.MemoryUsed, total), t.idle(h))...)
	}
	if d.OmittedHolders > 0 {
		t.add("", "", "", "", "", fmt.Sprintf("and %d more", d.OmittedHolders), "", "", "", "")
	}
}

// availability is as the table has it, without brackets.
func availability(d *allocation.Device) string {
	return strings.ReplaceAll(string(d.Availability), "_", " ")
}

// id shortens a UUID to a prefix, which the command accepts as an argument.
func (t *whoTable) id(id string) string {
	if t.wide {
		return id
	}
	return status.ShortID(id)
}

func (t *whoTable) since(from time.Time) string { return short(t.now.Sub(from)) }

func (t *whoTable) idle(h *allocation.Allocation) string {
	switch {
	case h.Idle == nil:
		return "?"
	case *h.Idle == 0:
		return "no"
	}
	s := short(time.Duration(*h.Idle * float64(time.Second)))
	if h.IdleCost != nil && *h.IdleCost >= 0.01 {
		s += fmt.Sprintf(" (total %.2f %s)", *h.IdleCost, h.Currency)
	}
	return s
}

// verdictOf returns the verdict and, for a bad one, the repair.
func verdictOf(d *allocation.Device) string {
	switch {
	case d.Down != "" && d.Health == "":
		return "down: " + d.Down
	case d.Health == "":
		return "-"
	case d.Action != "" && d.Action != "none":
		return d.Health + ": " + d.Action
	}
	return d.Health
}

// trouble adds why a device is not well, what to do, and its runbook. Of a device whose
// source is down, the source has them.
func (r *row) trouble(d *allocation.Device) {
	reasons := clean(strings.Join(d.Reasons, "; "))
	if r.doc = status.Runbook(d.Health, d.Down, d.Action); r.doc == "" {
		if reasons != "" && r.note != "" {
			reasons += "; "
		}
		r.note = reasons + r.note
		return
	}
	if r.reasons = reasons; reasons == "" && d.Down != "" {
		r.reasons = status.Down(d.Down)
	}
	if r.cure = status.Action(d.Action); r.cure != "" {
		r.cure += "."
	}
}

func percent(v *float64) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f %%", *v*100)
}

func memory(used, total *float64) string {
	const gib = 1 << 30
	switch {
	case used == nil:
		return "?"
	case total == nil:
		return fmt.Sprintf("%.1f GiB", *used/gib)
	}
	return fmt.Sprintf("%.1f/%.0f GiB", *used/gib, *total/gib)
}

// short formats a duration with its two largest units, as kubectl does.
func short(d time.Duration) string { return unspaced.Replace(status.Ago(d)) }

var unspaced = strings.NewReplacer(" min", "m", " ", "")
