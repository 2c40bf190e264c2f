package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// whoCommand is `accel-exporter who`: the pods that the devices of a node are
// allocated to, from a running exporter.
func whoCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	app := kingpin.New("accel-exporter who", "Lists the devices of this node with the pod that each is allocated to, since when and how busy it is, and why the others are not allocated.")
	ask.add(app)
	asJSON := app.Flag("json", "Print the report as JSON.").Bool()
	wide := app.Flag("wide", "Print full ids, PCI addresses, containers and resources.").Short('w').Bool()
	what := app.Arg("WHAT", "Only these devices: an index (2), the beginning of an id (GPU-4d1a), a PCI address (86:00.0), pod/NAME, pod/NAMESPACE/NAME, namespace/NAME, or free.").Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	var report allocation.Report
	if err := ask.get(ctx, "/debug/allocations", "", &report); err != nil {
		return err
	}
	if err := narrow(&report, *what); err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(&report)
	}
	return printWho(stdout, &report, *wide)
}

// narrow keeps the devices that match one of what, their partitions, and their
// processes.
func narrow(r *allocation.Report, what []string) error {
	if len(what) == 0 {
		return nil
	}
	found, keep := make([]bool, len(what)), map[string]bool{}
	for i := range r.Devices {
		for n, w := range what {
			if fits(&r.Devices[i], w) {
				found[n], keep[r.Devices[i].ID] = true, true
			}
		}
	}
	for i, w := range what {
		if !found[i] {
			return fmt.Errorf("no device matches %q; without an argument, all devices are listed", w)
		}
	}
	r.Devices = slices.DeleteFunc(r.Devices, func(d allocation.Device) bool { return !keep[d.ID] && !keep[d.Parent] })
	r.Unattributed = slices.DeleteFunc(r.Unattributed, func(p allocation.Process) bool { return !keep[p.Device] })
	r.Unresolved, r.Resources = nil, nil
	return nil
}

// fits reports whether what names the device.
func fits(d *allocation.Device, what string) bool {
	any := func(f func(h *allocation.Allocation) bool) bool {
		return slices.ContainsFunc(d.Holders, func(h allocation.Allocation) bool { return f(&h) })
	}
	if what == "free" {
		return d.Availability == allocation.Free
	}
	if ns, ok := strings.CutPrefix(what, "namespace/"); ok {
		return any(func(h *allocation.Allocation) bool { return h.Namespace == ns })
	}
	if pod, ok := strings.CutPrefix(what, "pod/"); ok {
		ns, name, both := strings.Cut(pod, "/")
		if !both {
			ns, name = "", pod
		}
		return any(func(h *allocation.Allocation) bool { return h.Pod == name && (ns == "" || h.Namespace == ns) })
	}
	if what == d.Index && d.Parent == "" {
		return true
	}
	lower := strings.ToLower(what)
	return len(what) > 2 && (strings.HasPrefix(strings.ToLower(d.ID), lower) ||
		d.Parent == "" && d.PCI != "" && strings.Contains(what, ":") && strings.HasSuffix(strings.ToLower(d.PCI), lower))
}
