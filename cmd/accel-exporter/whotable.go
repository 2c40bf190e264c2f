package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// printWho prints a report: a line for each allocation, and one for each
// device without one.
func printWho(w io.Writer, r *allocation.Report, wide bool) error {
	t := &whoTable{tab: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), now: r.Time, wide: wide}
	t.line("INDEX", "DEVICE", "MODEL", "HEALTH", "HOLDER", "HELD", "USE", "MEMORY", "IDLE", "NOTE")
	order(r.Devices)
	for i := range r.Devices {
		t.device(&r.Devices[i])
	}
	if err := t.tab.Flush(); err != nil {
		return err
	}
	var notes []string
	if r.State != podmap.StateFresh {
		notes = append(notes, fmt.Sprintf("The allocations are not certain (%s): %s.", r.State, cmp.Or(r.Reason, "no list yet")))
	}
	for _, p := range r.Unattributed {
		notes = append(notes, fmt.Sprintf("%s: process %d%s %s.", t.id(p.Device), p.PID, called(p.Command), describe(&p)))
	}
	for _, u := range r.Unresolved {
		notes = append(notes, fmt.Sprintf("%s/%s has %s %q, which matches no device of this node (%s).", u.Namespace, u.Pod, u.Resource, u.ID, u.How))
	}
	if len(notes) > 0 {
		notes = append([]string{""}, notes...)
	}
	for _, n := range notes {
		if _, err := fmt.Fprintln(w, n); err != nil {
			return err
		}
	}
	return nil
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
	tab  *tabwriter.Writer
	now  time.Time
	wide bool
}

func (t *whoTable) line(cells ...string) {
	fmt.Fprintln(t.tab, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
}

func (t *whoTable) device(d *allocation.Device) {
	index, model := cmp.Or(d.Index, "-"), strings.TrimPrefix(cmp.Or(d.Model, d.Class), "NVIDIA ")
	if d.Parent != "" {
		index, model = "  └", cmp.Or(d.Profile, model)
	}
	if t.wide && d.PCI != "" && d.Parent == "" {
		model += " " + d.PCI
	}
	first := []string{index, t.id(d.ID), model, verdictOf(d)}
	if len(d.Holders) == 0 {
		t.line(append(first, "("+strings.ReplaceAll(string(d.Availability), "_", " ")+")", "", percent(d.Utilization), memory(d.MemoryUsed, d.MemoryTotal), "", strings.Join(notes(d, nil), "; "))...)
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
		t.line(append(slices.Clone(first), holder, held, percent(h.Utilization), memory(h.MemoryUsed, total), t.idle(h), strings.Join(about, "; "))...)
	}
	if d.OmittedHolders > 0 {
		t.line("", "", "", "", fmt.Sprintf("and %d more", d.OmittedHolders))
	}
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
