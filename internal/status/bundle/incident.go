package bundle

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// Incident is the content of incident.json: a fault and its devices.
type Incident struct {
	Version  int       `json:"version"`
	Node     string    `json:"node"`
	Fault    time.Time `json:"fault"`
	Written  time.Time `json:"written"`
	Complete bool      `json:"complete"` // it has the minute after the fault
	// Requested: it was not written for a fault, but requested by a person.
	Requested bool     `json:"requested,omitempty"`
	Software  []Fact   `json:"software"`
	Devices   []Device `json:"devices"`
}

const version = 1

// Fact is a property with its value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Device is a failed device.
type Device struct {
	ID      string             `json:"id"`
	Summary string             `json:"summary,omitempty"`
	Facts   []Fact             `json:"facts"`
	Down    string             `json:"down,omitempty"`
	Verdict *collector.Verdict `json:"verdict,omitempty"`
	// AtFault is the verdict at the fault, where it was another one.
	AtFault *collector.Verdict `json:"verdict_at_fault,omitempty"`
	// Holders are the pods on the device and its partitions, Pods all that have held it
	// during the incident.
	Holders []Holder          `json:"holders"`
	Pods    []string          `json:"pods,omitempty"`
	Events  []collector.Event `json:"events"`
	// Readings are the latest readings, and readings of the minute before the fault that have no
	// value any more.
	Readings []Series `json:"readings"`

	vendor string
}

// Holder is a pod on a device.
type Holder struct {
	Device     string    `json:"device"`
	Namespace  string    `json:"namespace"`
	Pod        string    `json:"pod"`
	Containers []string  `json:"containers"`
	Since      time.Time `json:"since"`
}

// Series is a reading.
type Series struct {
	Metric string   `json:"metric"`
	Labels []string `json:"labels,omitempty"` // name=value
	Value  float64  `json:"value"`
	// At is when a reading was measured that has no value any more.
	At time.Time `json:"at,omitzero"`
}

func (s *Series) String() string {
	text := s.Metric
	if len(s.Labels) > 0 {
		text += "{" + strings.Join(s.Labels, ", ") + "}"
	}
	return text
}

func seriesOf(r *collector.Reading) Series {
	s := Series{Metric: r.Metric.Name, Value: r.Value}
	for i, name := range r.Metric.Labels {
		if i < len(r.Labels) {
			s.Labels = append(s.Labels, name+"="+r.Labels[i])
		}
	}
	return s
}

// make returns a bundle. It is complete with the minute after the fault.
func (r *Recorder) make(p *pending) []byte {
	r.making.Lock()
	defer r.making.Unlock()
	snap := r.o.Latest()
	if snap == nil {
		snap = &collector.Snapshot{}
	}
	in := &Incident{
		Version: version, Node: r.o.Node, Requested: p.requested, Fault: p.fault, Written: snap.Time,
		Complete: snap.Time.Sub(p.fault) >= r.o.After-time.Second,
	}
	report := &allocation.Report{}
	if r.o.Allocations != nil {
		report = cmp.Or(r.o.Allocations(), report)
	}
	events := snap.Events
	if len(events) > 0 && events[0].Time.After(p.fault) { // a storm has pushed out the events at the fault
		events = slices.Concat(p.events, events)
	}
	cper := map[string][]byte{}
	for _, id := range p.devices {
		d := deviceOf(id, snap, report, events, r.before(id, p.fault))
		if v := p.verdicts[id]; v != nil && (d.Verdict == nil || d.Verdict.State != v.State) {
			d.AtFault = v
		}
		records, known := r.errorRecords(&d, snap)
		if known != "" {
			d.Facts = append(d.Facts, Fact{"error records (CPER)", known})
		}
		for n, record := range records {
			cper[fmt.Sprintf("cper/%s-%d.bin", fileName(id), n+1)] = record
		}
		in.Devices = append(in.Devices, d)
	}
	in.Software = r.software(snap, in.Devices)
	log, logged := r.o.KernelLog()
	a := &archive{time: snap.Time}
	a.add(readmeName, in.text(log, logged, len(cper) > 0))
	a.add(incidentName, toJSON(in))
	a.add("kernel.log", []byte(strings.Join(append(log, ""), "\n")))
	for _, name := range slices.Sorted(maps.Keys(cper)) {
		a.add(name, cper[name])
	}
	for _, id := range p.devices {
		a.add("readings/"+fileName(id)+".csv", r.table(id))
	}
	a.add("node.json", toJSON(map[string]any{"sources": snap.Sources, "devices": snap.Devices, "node": snap.Node}))
	return a.bytes()
}

// cperCall is the function of NVIDIA's library that returns error records.
const cperCall = "nvmlSystemGetCPER_v1"

// errorRecords returns the error records of a device, and a note on them.
func (r *Recorder) errorRecords(d *Device, s *collector.Snapshot) (records [][]byte, known string) {
	r.mu.Lock()
	for i := range r.cper {
		if r.cper[i].Device == d.ID {
			records = append(records, r.cper[i].Record)
		}
	}
	r.mu.Unlock()
	switch {
	case len(records) > 0:
		return records, fmt.Sprintf("%d in cper/", len(records))
	case d.vendor != "nvidia":
		return nil, ""
	}
	for i := range s.Node {
		n := &s.Node[i]
		if n.Metric != collector.NativeCallErrors || n.Label("call") != cperCall || n.Value == 0 {
			continue
		}
		if known = "not read: " + n.Label("code"); n.Label("code") == "no_permission" {
			return nil, "not permitted: " + cperCall + " requires root"
		}
	}
	return nil, known
}

// software returns the versions of programs, with the drivers of the devices.
func (r *Recorder) software(s *collector.Snapshot, devices []Device) []Fact {
	list := slices.Clone(r.o.Software)
	for i := range s.Node {
		if n := &s.Node[i]; n.Metric == collector.DriverInfo && slices.ContainsFunc(devices, func(d Device) bool { return d.vendor == n.Label("vendor") }) {
			value := n.Label("version")
			if library := n.Label("library_version"); library != "" {
				value += ", library " + library
			}
			list = append(list, Fact{"driver " + n.Label("vendor"), value})
		}
	}
	return list
}

// before returns the last value of each series in the minute before the fault: a device that
// hangs has none for a while before it is known to have failed.
func (r *Recorder) before(id string, fault time.Time) (last []Series) {
	places := map[string]int{}
	for at, devices := range r.o.History.Rounds(id) {
		if since := fault.Sub(at); since <= 0 || since > time.Minute {
			continue
		}
		for _, readings := range devices {
			for i := range readings {
				s := seriesOf(&readings[i])
				s.At = at
				place, known := places[s.String()]
				if !known {
					place, last = len(last), append(last, s)
					places[s.String()] = place
				}
				last[place] = s
			}
		}
	}
	return last
}

func deviceOf(id string, s *collector.Snapshot, report *allocation.Report, events []collector.Event, before []Series) Device {
	out := Device{ID: id, Facts: []Fact{}, Holders: []Holder{}, Events: []collector.Event{}, Readings: []Series{}}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.ID == id {
			out.Facts, out.Down, out.Verdict, out.vendor = []Fact{}, d.Down, d.Verdict, d.Vendor
			for _, f := range status.Identity(d) {
				out.Facts = append(out.Facts, Fact(f))
			}
			for n := range d.Readings {
				reading := &d.Readings[n]
				out.Readings = append(out.Readings, seriesOf(reading))
				if reading.Metric == collector.DeviceIncident {
					out.Summary, out.Pods = reading.Label("summary"), strings.Fields(reading.Label("pods"))
				}
			}
			for _, b := range before {
				same := func(now Series) bool { return now.Metric == b.Metric && slices.Equal(now.Labels, b.Labels) }
				if !slices.ContainsFunc(out.Readings, same) {
					out.Readings = append(out.Readings, b)
				}
			}
		}
		if d.ID != id && d.Parent != id {
			continue
		}
		for n := range report.Devices {
			if report.Devices[n].ID != d.ID {
				continue
			}
			for _, h := range report.Devices[n].Holders {
				out.Holders = append(out.Holders, Holder{d.ID, h.Namespace, h.Pod, h.Containers, h.Since})
			}
		}
	}
	for _, e := range events {
		if e.Device == id {
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// table returns the readings of a device in each second of the history: a line for each
// round, a column for each series. A value that was not measured is empty.
func (r *Recorder) table(id string) []byte {
	// The history shares the labels of a series among its rounds, so they identify it.
	type series struct {
		metric *collector.Metric
		label  *string
	}
	rows := [][]string{{"time"}}
	columns := map[series]int{}
	for at, devices := range r.o.History.Rounds(id) {
		row := make([]string, len(rows[0]))
		row[0] = at.UTC().Format("2006-01-02T15:04:05.000Z")
		for _, readings := range devices {
			for i := range readings {
				reading := &readings[i]
				of := series{metric: reading.Metric}
				if len(reading.Labels) > 0 {
					of.label = &reading.Labels[0]
				}
				value := strconv.FormatFloat(reading.Value, 'g', -1, 64)
				if column := columns[of]; column > 0 {
					row[column] = value
					continue
				}
				columns[of] = len(row)
				s := seriesOf(reading)
				rows[0], row = append(rows[0], s.String()), append(row, value)
			}
		}
		rows = append(rows, row)
	}
	var b bytes.Buffer
	to := csv.NewWriter(&b)
	for _, row := range rows { // writing to a buffer does not fail
		_ = to.Write(append(row, make([]string, len(rows[0])-len(row))...))
	}
	to.Flush()
	return b.Bytes()
}
