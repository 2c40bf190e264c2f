package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// Detail is the page of a device.
type Detail struct {
	Device
	// Facts are what identifies it, Reasons all reasons of its verdict.
	Facts   []Fact
	Reasons []Reason
	Charts  []Chart
	Parts   []Device
	Events  []Event
	Alerts  []Alert
	// Readings are all series.
	Readings []Reading
}

// Fact is a property with its value.
type Fact struct{ Name, Value string }

// Reason is a reason of the verdict.
type Reason struct {
	State
	Code, Text, Action string // Action is "" where it is the device's
	Since              time.Time
}

// Chart is a line with the value and the ends of its scale.
type Chart struct {
	Name string
	Cell
}

// Client is a process on the device.
type Client struct {
	PID int
	// Type is how the process uses the device; UID is the number of its user and
	// Job that of its Slurm job.
	Type, Command, UID, Job, Utilization, Memory string
}

// clients adds the processes on the device.
func (r *Device) clients(d *collector.Device, a *allocation.Device) {
	var list []collector.Client
	list, r.MoreClients = first(d.Clients, maxClients)
	for i := range list {
		c := Client{PID: list[i].PID, Type: list[i].Type}
		for _, x := range list[i].Readings {
			if x.Metric == collector.MemoryUsed {
				c.Memory = size(float32(x.Value))
			}
		}
		if a != nil {
			if at := slices.IndexFunc(a.ProcessList, func(p allocation.Process) bool { return p.PID == c.PID }); at >= 0 {
				p := &a.ProcessList[at]
				c.Command, c.UID, c.Job = p.Command, p.UID, p.Job
				if p.Utilization != nil {
					c.Utilization = percent(float32(*p.Utilization))
				}
			}
		}
		r.Clients = append(r.Clients, c)
	}
}

// Reading is a series.
type Reading struct{ Name, Labels, Value string }

// detail turns the page into that of one device, and reports whether there is one.
func (v *View) detail(s *collector.Snapshot, id string) bool {
	var d *collector.Device
	for i := range s.Devices {
		if s.Devices[i].ID == id {
			d = &s.Devices[i]
		}
	}
	if d == nil {
		return false
	}
	out := &Detail{}
	for i := range v.Devices {
		switch row := &v.Devices[i]; {
		case row.ID == id:
			out.Device = *row
		case row.parent == id:
			out.Parts = append(out.Parts, *row)
		}
	}
	chart := out.Device
	chart.measure(d, v.samples[id], large)
	for _, c := range []Chart{{"Utilization", chart.Utilization}, {"Memory", chart.Memory}, {"Temperature", chart.Temperature}, {"Power", chart.Power}} {
		if c.Text != "" || c.Spark != nil {
			out.Charts = append(out.Charts, c)
		}
	}
	out.facts(d)
	if d.Verdict != nil {
		for _, r := range d.Verdict.Reasons {
			if r.Action == d.Verdict.Action {
				r.Action = ""
			}
			out.Reasons = append(out.Reasons, Reason{
				State: State{r.Severity, cmp.Or(states[r.Severity], warn)}, Code: r.Code, Text: sentence(r.Text),
				Action: Action(r.Action), Since: r.Since,
			})
		}
	}
	index := map[string]string{id: cmp.Or(out.Index, out.Short)}
	for i := len(s.Events) - 1; i >= 0 && len(out.Events) < maxEvents; i-- {
		if e := &s.Events[i]; e.Device == id || e.Partition == id {
			out.Events = append(out.Events, eventOf(e, index))
		}
	}
	if v.Alerts != nil {
		for _, a := range v.Alerts.List {
			if a.Device() == id {
				out.Alerts = append(out.Alerts, a)
			}
		}
	}
	for i := range d.Readings {
		r := &d.Readings[i]
		out.Readings = append(out.Readings, Reading{r.Metric.Name, pairs(r), strconv.FormatFloat(r.Value, 'g', -1, 64)})
	}
	v.Device, v.Title = out, out.Name()+", "+v.Node
	return true
}

// Identity is what identifies a device, in the order in which a vendor's form asks for it.
func Identity(d *collector.Device) (list []Fact) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, Fact{name, value})
		}
	}
	label := func(m *collector.Metric, name string) string { return Label(d, m, name) }
	add("serial number", label(collector.DeviceInfo, "serial"))
	add("part number", label(collector.DeviceInfo, "board_part_number"))
	add("model", cmp.Or(label(collector.DeviceInfo, "model"), d.Model))
	add("id", d.ID)
	add("PCI address", cmp.Or(label(collector.DeviceInfo, "pci_address"), d.PCI))
	add("index", label(collector.DeviceInfo, "index"))
	for _, name := range collector.PlatformInfo.Labels {
		add(strings.ReplaceAll(name, "_", " "), label(collector.PlatformInfo, name))
	}
	for i := range d.Readings {
		switch r := &d.Readings[i]; r.Metric {
		case collector.FirmwareInfo:
			add("firmware "+r.Label("component"), r.Label("version"))
		case collector.FPGABitstreamInfo:
			add(strings.TrimSpace("bitstream "+r.Label("region")+" "+r.Label("kind")), r.Label("id"))
		}
	}
	add("kernel driver", d.Driver)
	return list
}

// facts adds what identifies the device and describes it.
func (o *Detail) facts(d *collector.Device) {
	o.Facts = Identity(d)
	add := func(name, value string) {
		if value != "" {
			o.Facts = append(o.Facts, Fact{name, value})
		}
	}
	add("parent", d.Parent)
	add("vendor", d.Vendor)
	for _, name := range []string{"architecture", "numa_node", "profile"} {
		add(strings.ReplaceAll(name, "_", " "), Label(d, collector.DeviceInfo, name))
	}
	if !d.Sampled.IsZero() {
		add("last answer", d.Sampled.UTC().Format(time.DateTime))
	}
}

// pairs returns the labels of a reading.
func pairs(r *collector.Reading) string {
	var out []string
	for i, name := range r.Metric.Labels {
		if i < len(r.Labels) {
			out = append(out, fmt.Sprintf("%s=%q", name, r.Labels[i]))
		}
	}
	return strings.Join(out, " ")
}
