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
	t.columns = []column{{title: "INDEX"}, {title: "DEVICE"}, {title: "MODEL", least: 8, optional: true}, {title: "HEALTH", least: 8, color: healthColor}}
	if t.processes {
		t.columns = append(t.columns, column{title: "PID"}, column{title: "USER"}, column{title: "COMMAND", least: 8}, column{title: "SLURM JOB"}, column{title: "USE"}, column{title: "MEMORY"})
	} else {
		t.columns = append(t.columns, column{title: "HOLDER", least: 20}, column{title: "HELD", optional: true}, column{title: "USE"}, column{title: "MEMORY"}, column{title: "IDLE", least: 6})
	}
	order(r.Devices)
	for i := range r.Devices {
		if d := &r.Devices[i]; t.processes {
			t.users(d, r.local)
		} else {
			t.device(d)
		}
	}
	t.print(s)
	var notes []string
	if r.State != podmap.StateFresh && r.State != podmap.StateAbsent {
		notes = append(notes, fmt.Sprintf("The allocations are not certain (%s): %s.", r.State, cmp.Or(r.Reason, "no list yet")))
	}
	for _, p := range r.Unattributed {
		if !t.processes {
			notes = append(notes, fmt.Sprintf("%s: process %d%s %s.", t.id(p.Device), p.PID, called(p.Command), describe(&p)))
		}
	}
	for _, u := range r.Unresolved {
		notes = append(notes, fmt.Sprintf("%s/%s has %s %q, which matches no device of this node (%s).", u.Namespace, u.Pod, u.Resource, u.ID, u.How))
	}
	if len(notes) > 0 {
		fmt.Fprintln(s)
	}
	for _, n := range notes {
		s.paragraph("", "", n)
	}
	return nil
}

// printSources prints the sources that are not well, each with its error.
func printSources(s *screen, sources []sourceJSON) {
	printed := false
	for i := range sources {
		x := &sources[i]
		state, color := strings.ReplaceAll(x.Reason, "_", " "), red
		switch {
		case x.Up && x.Err == "", x.Reason == collector.SourceAbsent && slices.ContainsFunc(sources, func(o sourceJSON) bool { return o.Up }):
			continue
		case x.Up:
			state, color = "read in part", yellow
		case x.Released:
			state, color = "released: its driver is closed until POST /-/attach?source="+x.Source, yellow
			if x.ReleasedUntil != nil {
				state += ", at the latest until " + x.ReleasedUntil.Local().Format(time.TimeOnly)
			}
		case x.Reason == collector.SourceAbsent, x.Reason == collector.SourceStarting:
			color = ""
		}
		if x.Err != "" && !x.Released {
			state += ": " + x.Err
		}
		s.paragraph(color, "", x.Source+" "+state)
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
	first, note := t.first(d), strings.Join(d.Reasons, "; ")
	if len(d.ProcessList) == 0 {
		none := "?" // unknown
		if d.Processes != nil || d.Availability == allocation.Partitioned {
			none = "-"
		}
		t.add(note, append(first, none, "", "", "", percent(d.Utilization), memory(d.MemoryUsed, d.MemoryTotal))...)
		return
	}
	for i := range d.ProcessList {
		p := &d.ProcessList[i]
		if i > 0 {
			first, note = []string{"", "", "", ""}, ""
		}
		total := d.MemoryTotal
		if len(d.ProcessList) > 1 {
			total = nil
		}
		t.add(note, append(first, strconv.Itoa(p.PID), userOf(p.UID, local), cmp.Or(p.Command, "?"), p.Job, percent(p.Utilization), memory(p.MemoryUsed, total))...)
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

// order sorts devices by class and number, partitions behind their device.
func order(devices []allocation.Device) {
	type key struct {
		class  string
		number int
		pci    string
	}
	keys := map[string]key{}
	for i := range devices {
		d := &devices[i]
		n, err := strconv.Atoi(d.Index)
		if err != nil {
			n = 1 << 30
		}
		keys[d.ID] = key{d.Class, n, d.PCI}
	}
	top := func(d *allocation.Device) string { return cmp.Or(d.Parent, d.ID) }
	slices.SortStableFunc(devices, func(a, b allocation.Device) int {
		x, y := top(&a), top(&b)
		kx, ky := keys[x], keys[y]
		return cmp.Or(
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
	index, model := cmp.Or(d.Index, "-"), strings.TrimPrefix(cmp.Or(d.Model, d.Class), "NVIDIA ")
	if d.Parent != "" {
		index, model = "  └", cmp.Or(d.Profile, model)
	}
	if t.wide && d.PCI != "" && d.Parent == "" {
		model += " " + d.PCI
	}
	return []string{index, t.id(d.ID), model, verdictOf(d)}
}

func (t *whoTable) device(d *allocation.Device) {
	first := t.first(d)
	if len(d.Holders) == 0 {
		t.add(strings.Join(notes(d, nil), "; "), append(first, "("+availability(d)+")", "", percent(d.Utilization), memory(d.MemoryUsed, d.MemoryTotal), "")...)
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
		var about []string
		if i == 0 {
			about = notes(d, h)
		} else {
			about = notes(nil, h)
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
	prefix, rest, ok := strings.Cut(id, "-")
	if t.wide || !ok || len(rest) < 36 {
		return id
	}
	return prefix + "-" + rest[:8]
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

// notes returns further facts about a device, or about an allocation of it.
func notes(d *allocation.Device, h *allocation.Allocation) []string {
	var out []string
	if d != nil {
		if d.Why != "" {
			out = append(out, d.Why)
		}
		out = append(out, d.Reasons...)
		if len(d.Holders) > 0 && len(d.NotAllocatable) > 0 {
			out = append(out, "not allocatable again as "+strings.Join(d.NotAllocatable, ", "))
		}
	}
	if h == nil {
		return out
	}
	for _, x := range []struct {
		is   bool
		text string
	}{
		{h.Shared, "shared"},
		{h.Kept, "not in the latest list of the kubelet"},
		{h.Contested, "contested: several pods are listed with it"},
		{h.Nominal, "the pod may have another device than its id names"},
	} {
		if x.is {
			out = append(out, x.text)
		}
	}
	for _, f := range h.Faults {
		out = append(out, fmt.Sprintf("%s at %s", f.Name, f.Time.Format(time.TimeOnly)))
	}
	return out
}

// describe describes a process without an allocation.
func describe(p *allocation.Process) string {
	switch p.Reason {
	case "other_pod":
		return "of " + p.Namespace + "/" + p.Pod + " uses it without an allocation"
	case "host_process":
		if p.Job != "" {
			return "of Slurm job " + p.Job + " uses it"
		}
		return "outside every pod uses it"
	case "unknown_pod":
		return "of an unknown pod (" + p.PodUID + ") uses it"
	}
	return "uses it and is not visible in procfs"
}

func called(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
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
func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
