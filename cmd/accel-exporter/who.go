package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// whoReport is the answer of /debug/allocations.
type whoReport struct {
	allocation.Report
	Sources []sourceJSON `json:"sources"`
	local   bool         // the exporter is on this machine
}

// whoCommand is `accel-exporter who`: the pods that the devices of a node are
// allocated to, or the processes on them, from a running exporter.
func whoCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	var view viewFlags
	app := kingpin.New("accel-exporter who", "Lists the devices of this node with the pod that each is allocated to, since when and how busy it is, and why the others are not allocated. Without a kubelet it lists the processes on each device.")
	ask.add(app)
	view.add(app)
	wide := app.Flag("wide", "Print full ids, PCI addresses, containers and resources.").Short('w').Bool()
	what := app.Arg("WHAT", "Only these devices: an index (2), the beginning of an id (GPU-4d1a or 4d1a), a PCI address (86:00.0), a pod (NAMESPACE/NAME, pod/NAME), namespace/NAME, user/NAME, job/NUMBER, pid/NUMBER, a state of health (healthy, degraded, failed, unknown), idle, or an availability (free, occupied, partitioned, not_allocatable).").Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	return show(ctx, &view, stdout, func(ctx context.Context) (*whoReport, error) {
		report := &whoReport{local: ask.local()}
		if err := ask.get(ctx, "/debug/allocations", "", report); err != nil {
			return nil, err
		}
		return report, narrow(report, *what)
	}, func(s *screen, r *whoReport) error { return printWho(s, r, *wide) })
}

// narrow keeps the devices that match one of what, their partitions, and their
// processes.
func narrow(r *whoReport, what []string) error {
	if len(what) == 0 {
		return nil
	}
	found, keep := make([]bool, len(what)), map[string]bool{}
	for i := range r.Devices {
		for n, w := range what {
			if fits(&r.Devices[i], w, r.local) {
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
func fits(d *allocation.Device, what string, local bool) bool {
	any := func(f func(h *allocation.Allocation) bool) bool {
		return slices.ContainsFunc(d.Holders, func(h allocation.Allocation) bool { return f(&h) })
	}
	process := func(f func(p *allocation.Process) bool) bool {
		return slices.ContainsFunc(d.ProcessList, func(p allocation.Process) bool { return f(&p) })
	}
	what = strings.Trim(what, "()")
	switch what {
	case "healthy", "degraded", "failed", "unknown":
		return d.Health == what
	case "idle":
		return any(func(h *allocation.Allocation) bool { return h.Idle != nil && *h.Idle > 0 })
	case string(d.Availability), availability(d):
		return true
	}
	if name, ok := strings.CutPrefix(what, "user/"); ok {
		return process(func(p *allocation.Process) bool { return p.UID == name || userOf(p.UID, local) == name })
	}
	if job, ok := strings.CutPrefix(what, "job/"); ok {
		return process(func(p *allocation.Process) bool { return p.Job == job })
	}
	if pid, ok := strings.CutPrefix(what, "pid/"); ok {
		return process(func(p *allocation.Process) bool { return strconv.Itoa(p.PID) == pid })
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
	if ns, name, ok := strings.Cut(what, "/"); ok && any(func(h *allocation.Allocation) bool { return h.Namespace == ns && h.Pod == name }) {
		return true
	}
	if what == d.Index && d.Parent == "" {
		return true
	}
	lower := strings.ToLower(what)
	_, short, _ := strings.Cut(d.ID, "-")
	return len(what) > 2 && (strings.HasPrefix(strings.ToLower(d.ID), lower) || len(what) > 3 && strings.HasPrefix(strings.ToLower(short), lower) ||
		d.Parent == "" && d.PCI != "" && strings.Contains(what, ":") && strings.HasSuffix(strings.ToLower(d.PCI), lower))
}
