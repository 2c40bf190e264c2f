package main

import (
	"context"
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
	what := app.Arg("WHAT", "Only these devices: an index (2), the beginning of an id (GPU-4d1a or 4d1a), a PCI address (86:00.0), idle, or what the table has: a model, a state of health, an action, a pod, a namespace, a PID, a user, a command, a Slurm job, an availability. pod/NAME, namespace/NAME, pid/NUMBER, user/NAME, command/NAME and job/NUMBER name the kind.").Strings()
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
	keep := map[string]bool{}
	for _, w := range what {
		found := false
		for numbers := false; !found; numbers = true { // an index before a PID
			for i := range r.Devices {
				if d := &r.Devices[i]; fits(d, w, r.local, numbers) {
					found, keep[d.ID] = true, true
				}
			}
			if numbers {
				break
			}
		}
		if !found {
			return noMatch{"device", w}
		}
	}
	r.Devices = slices.DeleteFunc(r.Devices, func(d allocation.Device) bool { return !keep[d.ID] && !keep[d.Parent] })
	r.Unattributed = slices.DeleteFunc(r.Unattributed, func(p allocation.Process) bool { return !keep[p.Device] })
	r.Unresolved, r.Resources = nil, nil
	return nil
}

// namesOf returns what the table has about a device, by kind.
func namesOf(d *allocation.Device, local bool) map[string][]string {
	names := map[string][]string{"": {d.Health, d.Action, verdictOf(d), string(d.Availability), availability(d), modelOf(d), d.Model}}
	add := func(kind string, values ...string) { names[kind] = append(names[kind], values...) }
	if d.Parent == "" {
		add("", d.Index)
	}
	for i := range d.Holders {
		h := &d.Holders[i]
		add("pod", h.Namespace+"/"+h.Pod, h.Pod)
		add("namespace", h.Namespace)
		if h.Idle != nil && *h.Idle > 0 {
			add("", "idle")
		}
	}
	for i := range d.ProcessList {
		p := &d.ProcessList[i]
		add("user", p.UID, userOf(p.UID, local))
		add("command", p.Command)
		add("job", p.Job)
		add("pid", strconv.Itoa(p.PID))
	}
	return names
}

// fits reports whether what names the device, by a bare PID or Slurm job if numbers is
// true.
func fits(d *allocation.Device, what string, local, numbers bool) bool {
	what = strings.Trim(what, "()")
	if what == "" {
		return false
	}
	is := func(name string) bool { return strings.EqualFold(name, what) }
	kind, rest, _ := strings.Cut(what, "/")
	for k, names := range namesOf(d, local) {
		if k == kind && rest != "" && slices.Contains(names, rest) || (numbers || k != "pid" && k != "job") && slices.ContainsFunc(names, is) {
			return true
		}
	}
	lower := strings.ToLower(what)
	_, short, _ := strings.Cut(d.ID, "-")
	return len(what) > 2 && (strings.HasPrefix(strings.ToLower(d.ID), lower) || len(what) > 3 && strings.HasPrefix(strings.ToLower(short), lower) ||
		d.Parent == "" && d.PCI != "" && strings.Contains(what, ":") && strings.HasSuffix(strings.ToLower(d.PCI), lower))
}
