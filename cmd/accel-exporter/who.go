package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/status"
)

// getStatus returns what the status page of a running exporter shows, with all about a
// device, "" for none.
func (f *askFlags) getStatus(ctx context.Context, device string) (*status.View, error) {
	v := &status.View{}
	return v, f.get(ctx, "/debug/status", "device="+url.QueryEscape(device), v)
}

// states are words for devices, of which there may be none now.
var states = []string{"healthy", "degraded", "failed", "down", "unknown", "idle", "free"}

// whoCommand is `accel-exporter who`: the pods that the devices of a node are
// allocated to, or the processes on them, from a running exporter.
func whoCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	var view viewFlags
	app := kingpin.New("accel-exporter who", "Lists the devices of this node, those that need attention first, with the pod that each is allocated to, since when and how busy it is, and why the others are not allocated. Without a kubelet it lists the processes on each device.")
	ask.add(app)
	view.add(app)
	wide := app.Flag("wide", "Print full ids, PCI addresses, containers and resources.").Short('w').Bool()
	what := app.Arg("WHAT", whatHelp).Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	v, err := ask.getStatus(ctx, "")
	if err != nil {
		return err
	}
	f := &frame{view: v, local: ask.local(), wide: *wide, filters: *what}
	for _, w := range *what {
		if !slices.Contains(states, w) && !slices.ContainsFunc(v.Devices, func(d status.Device) bool { return f.fits(&d, w) }) {
			return fmt.Errorf("no device matches %q; without an argument, all are listed", w)
		}
	}
	if len(*what) > 0 {
		v.Strays, v.Devices = nil, slices.DeleteFunc(v.Devices, func(d status.Device) bool { return !f.wants(&d) })
	}
	return show(&view, stdout, v, func(s *screen, _ *status.View) error {
		f.print(s)
		return nil
	})
}

const whatHelp = "Only these devices: an index (2), a PID or the number of a Slurm job, or a part of what the table has: an id, a PCI address, a model, a state, an action, a pod, a user, a command, idle."

// frame is a picture of a node: what who prints once, and top shows live.
type frame struct {
	view    *status.View
	local   bool // the exporter is on this machine, which knows the users' names
	wide    bool
	filters []string // of devices, which fit one of them; none for all
}

// deviceLine is a line of a device: a pod or a process on it, or none.
type deviceLine struct {
	*status.Device
	first                                         bool // of the device
	pid, user, command, job, pod, held, use, idle string
	memory, note                                  string
}

// deviceColumn is a column of the list of devices.
type deviceColumn struct {
	column
	cell func(f *frame, l *deviceLine) string
}

// ofDevice returns the cell of a column that a device has once.
func ofDevice(cell func(f *frame, d *status.Device) string) func(*frame, *deviceLine) string {
	return func(f *frame, l *deviceLine) string {
		if !l.first {
			return ""
		}
		return cell(f, l.Device)
	}
}

// measured returns the cell of a value of the device.
func measured(of func(d *status.Device) *status.Cell) func(*frame, *deviceLine) string {
	return ofDevice(func(_ *frame, d *status.Device) string { return cmp.Or(of(d).Text, unmeasured) })
}

var deviceColumns = []deviceColumn{
	{column{title: "INDEX"}, ofDevice(func(_ *frame, d *status.Device) string {
		if d.Part {
			return "  └"
		}
		return cmp.Or(d.Index, "-")
	})},
	{column{title: "DEVICE", rank: 1}, ofDevice(func(f *frame, d *status.Device) string {
		if f.wide {
			return d.ID
		}
		return d.Short
	})},
	{column{title: "MODEL", least: 8, rank: 2}, ofDevice(func(f *frame, d *status.Device) string {
		if f.wide && !d.Part {
			return strings.TrimSpace(d.Model + " " + d.PCI)
		}
		return d.Model
	})},
	{column{title: "IMAGE", least: 15, rank: 6}, ofDevice(func(_ *frame, d *status.Device) string { return d.Image })},
	{column{title: "STATE", least: 8, color: stateColor}, ofDevice(func(_ *frame, d *status.Device) string {
		if d.Age != "" {
			return d.Word + ", " + d.Age + " old"
		}
		return d.Word
	})},
	{column{title: "TEMP", right: true, rank: 4}, measured(func(d *status.Device) *status.Cell { return &d.Temperature })},
	{column{title: "POWER", right: true, rank: 5}, measured(func(d *status.Device) *status.Cell { return &d.Power })},
	{column{title: "USE", right: true}, func(_ *frame, l *deviceLine) string { return l.use }},
	{column{title: "USE, 10 MIN", color: lineColor, rank: 7}, ofDevice(func(_ *frame, d *status.Device) string { return d.Utilization.Bars })},
	{column{title: "MEMORY", right: true}, func(_ *frame, l *deviceLine) string { return strings.Replace(l.memory, " of ", "/", 1) }},
	{column{title: "PID"}, func(_ *frame, l *deviceLine) string { return l.pid }},
	{column{title: "USER"}, func(_ *frame, l *deviceLine) string { return l.user }},
	{column{title: "COMMAND", least: 8}, func(_ *frame, l *deviceLine) string { return l.command }},
	{column{title: "SLURM JOB"}, func(_ *frame, l *deviceLine) string { return l.job }},
	{column{title: "POD", least: 14}, func(_ *frame, l *deviceLine) string { return l.pod }},
	{column{title: "FOR", rank: 3}, func(_ *frame, l *deviceLine) string { return strings.Replace(l.held, "at least ", "≥", 1) }},
	{column{title: "IDLE", least: 6}, func(_ *frame, l *deviceLine) string { return l.idle }},
}

// toneColor has the colour of each tone.
var toneColor = map[string]string{"good": green, "warn": yellow, "bad": red}

func lineColor(string) string { return green }

func stateColor(cell string) string {
	word, _, _ := strings.Cut(cell, ",")
	return map[string]string{"healthy": green, "degraded": yellow, "unknown": yellow, "not answering": yellow, "failed": red, "down": red}[word]
}

// lines returns the lines of a device. The use and the memory of a device with one
// pod are the device's.
func (f *frame) lines(d *status.Device) []deviceLine {
	var list []deviceLine
	if f.view.Unmanaged {
		for i := range d.Clients {
			c := &d.Clients[i]
			list = append(list, deviceLine{pid: strconv.Itoa(c.PID), user: f.userOf(c.UID), command: cmp.Or(c.Command, "?"), job: c.Job, use: c.Utilization, memory: c.Memory})
		}
		if d.MoreClients > 0 {
			list = append(list, deviceLine{command: fmt.Sprintf("and %d more", d.MoreClients)})
		}
	} else {
		for i := range d.Holders {
			a := &d.Holders[i]
			l := deviceLine{pod: a.Pod, held: a.Held, use: a.Utilization, memory: a.Memory, idle: cmp.Or(a.Idle, unmeasured), note: a.Notes}
			if a.Cost != "" {
				l.idle += " (total " + a.Cost + ")"
			}
			if f.wide {
				l.pod += " " + a.Containers
			}
			list = append(list, l)
		}
		if d.MoreHolders > 0 {
			list = append(list, deviceLine{pod: fmt.Sprintf("and %d more", d.MoreHolders)})
		}
	}
	if len(list) == 0 {
		list = []deviceLine{{note: d.Why}}
		if f.view.Unmanaged {
			list[0].command = d.Free
		} else if list[0].pod = "(" + d.Free + ")"; strings.HasPrefix(d.Free, "free") {
			list[0].note = ""
		}
	}
	if len(list) == 1 {
		list[0].use, list[0].memory = d.Utilization.Text, d.Memory.Text
	}
	for i := range list {
		l := &list[i]
		l.Device, l.first = d, i == 0
		l.use, l.memory = cmp.Or(l.use, unmeasured), cmp.Or(l.memory, unmeasured)
	}
	return list
}

// userOf returns the name of a user of this machine, else the number.
func (f *frame) userOf(uid string) string {
	if u, err := user.LookupId(uid); f.local && err == nil {
		return u.Username
	}
	return cmp.Or(uid, "?")
}

// devices returns the devices that the filters select.
func (f *frame) devices() (list []*status.Device) {
	for i := range f.view.Devices {
		if d := &f.view.Devices[i]; f.wants(d) {
			list = append(list, d)
		}
	}
	return list
}

// wants reports whether the filters select a device.
func (f *frame) wants(d *status.Device) bool {
	return len(f.filters) == 0 || slices.ContainsFunc(f.filters, func(filter string) bool { return f.fits(d, filter) })
}

// fits reports whether a device has every word of a filter: a number is its index, a
// PID or a Slurm job, other words are a part of what the table has.
func (f *frame) fits(d *status.Device, filter string) bool {
	texts := []string{d.ID, d.PCI, d.Class, d.Model, d.Image, d.Word, d.Action, d.Free, d.Code}
	var numbers []string
	if !d.Part {
		numbers = []string{d.Index}
	}
	for i := range d.Holders {
		a := &d.Holders[i]
		texts = append(texts, a.Pod)
		if a.IdleSeconds > 0 {
			texts = append(texts, "idle")
		}
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		texts = append(texts, c.Command, f.userOf(c.UID))
		numbers = append(numbers, strconv.Itoa(c.PID), c.Job, c.UID)
	}
	text := strings.ToLower(strings.Join(texts, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if _, err := strconv.Atoi(word); err == nil && !slices.Contains(numbers, word) || err != nil && !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// print prints the headline, the sources that need attention, the devices, and what is
// not certain.
func (f *frame) print(s *screen) {
	v := f.view
	if len(f.filters) == 0 {
		s.paragraph(toneColor[v.Tone], "", v.Headline)
		f.sources(s)
		fmt.Fprintln(s)
	}
	if devices := f.devices(); len(devices) > 0 || len(f.filters) == 0 {
		f.table(devices).print(s)
	} else {
		verb := "matches "
		if slices.Contains(states, f.filters[0]) {
			verb = "is "
		}
		s.paragraph("", "", "No device "+verb+strings.Join(f.filters, " or ")+".")
	}
	if v.Uncertain != "" || len(v.Strays) > 0 {
		fmt.Fprintln(s)
	}
	s.paragraph(yellow, "", v.Uncertain)
	for _, text := range v.Strays {
		s.paragraph("", "", text)
	}
	if v.More.Strays > 0 {
		fmt.Fprintf(s, "and %d more\n", v.More.Strays)
	}
}

// sources prints the sources that are not well, each with its error and what to do, and
// the files whose content is not in force. A source without hardware matters where no
// source has some.
func (f *frame) sources(s *screen) {
	for i := range f.view.Sources {
		x := &f.view.Sources[i]
		if x.Word == "up" || x.Tone == "neutral" && len(f.view.Devices) > 0 {
			continue
		}
		s.paragraph(toneColor[x.Tone], "", x.Name+" "+x.Word+": "+strings.ReplaceAll(cmp.Or(x.Err, x.Meaning), "\n", "; "))
		s.remedy(x.Cure, x.Doc)
	}
	for _, r := range f.view.Remarks {
		if r.Tone == "bad" {
			s.paragraph(yellow, "", r.What+": "+strings.ReplaceAll(r.Found, "\n", "; "))
			s.remedy(r.Cure+".", "")
		}
	}
}

// table returns a table of devices, with what is wrong below each.
func (f *frame) table(devices []*status.Device) *table {
	t := &table{}
	for _, c := range deviceColumns {
		t.columns = append(t.columns, c.column)
	}
	for _, d := range devices {
		for _, l := range f.lines(d) {
			cells := make([]string, len(deviceColumns))
			for i, c := range deviceColumns {
				cells[i] = c.cell(f, &l)
			}
			t.add(l.note, cells...)
			r := &t.rows[len(t.rows)-1]
			r.id = d.ID
			if l.first && (d.Doc != "" || len(d.Reasons) > 0) {
				r.reasons, r.cure, r.doc = clean(strings.Join(d.Reasons, " ")), d.Action, d.Doc
				if d.More > 0 {
					r.reasons += fmt.Sprintf(" And %d more.", d.More)
				}
				if r.cure != "" {
					r.cure += "."
				}
			}
		}
	}
	return t
}
