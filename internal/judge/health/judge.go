package health

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Limits on the state.
const (
	maxFaults  = 32  // per device
	maxWaiting = 256 // events of devices that are not in the Snapshot
)

// Options are inputs of a Judge that are not in a Snapshot.
type Options struct {
	// Boot is when the node was booted: older events of a log do not count. Zero
	// if unknown.
	Boot time.Time
	// Faults are the events of the faults that an earlier process left in this boot,
	// and Energy the energy counters of their devices, which restart with a reset.
	Faults []collector.Event
	Energy map[string]float64
	// Since is when the first of these processes started, or this process if nothing is
	// kept: the faults of events from before are unknown, unless the kernel log has them.
	Since time.Time
}

// Judge sets the verdict of every device and the families that publish it.
type Judge struct {
	next    atomic.Pointer[Catalogue]
	options Options

	catalogue *Catalogue
	devices   map[string]*device
	waiting   []collector.Event // of devices that are not in the Snapshot
	begin     time.Time         // since when the faults of events are known, zero for ever
	logged    bool              // the kernel log is read
	loaded    time.Time         // when NVIDIA's driver was last loaded, by events
	round     uint64

	// Scratch space for one device at a time.
	look  look
	found []finding
}

// New returns a Judge that uses the catalogue c.
func New(c *Catalogue, o Options) *Judge {
	j := &Judge{options: o, devices: map[string]*device{}, waiting: o.Faults}
	j.Apply(c)
	return j
}

// Apply replaces the catalogue from the next Snapshot on. It may be called
// concurrently.
func (j *Judge) Apply(c *Catalogue) { j.next.Store(c) }

// Judge implements collector.Judge.
func (j *Judge) Judge(s *collector.Snapshot) {
	if c := j.next.Load(); c != j.catalogue {
		for _, st := range j.devices {
			st.setCatalogue(c)
		}
		j.catalogue = c
		j.look.hits = make([]hit, len(c.conditions))
	}
	j.round++
	j.known(s)
	for i := range s.Devices {
		id := s.Devices[i].ID
		if j.devices[id] == nil {
			j.devices[id] = newDevice(j.catalogue)
			if energy, ok := j.options.Energy[id]; ok {
				j.devices[id].energy = energy
			}
		}
		j.devices[id].round = j.round
		j.devices[id].foreign = s.Devices[i].Vendor != "nvidia"
	}
	events := slices.Concat(j.waiting, s.News)
	j.waiting = nil
	for i := range events {
		if !j.apply(&events[i], s.Time) {
			j.waiting = append(j.waiting, events[i])
		}
	}
	j.waiting = j.waiting[max(0, len(j.waiting)-maxWaiting):]
	// A partition inherits from its parent, so parents come first.
	for _, partitions := range []bool{false, true} {
		for i := range s.Devices {
			if d := &s.Devices[i]; (d.Parent != "") == partitions {
				j.judge(s, d)
			}
		}
	}
	maps.DeleteFunc(j.devices, func(_ string, st *device) bool { return st.round != j.round })
}

// early is how long after a boot the exporter or the kernel log may begin, so that no
// fault from before is missing: a node that boots starts its exporter.
const early = 15 * time.Minute

// known sets since when the faults of events are known.
func (j *Judge) known(s *collector.Snapshot) {
	j.begin, j.logged = j.options.Since, false
	for i := range s.Node {
		r := &s.Node[i]
		if r.Metric != collector.KernelLogBegin {
			continue
		}
		j.logged = true
		if r.Value <= float64(j.begin.Unix()) {
			j.begin = time.Unix(int64(r.Value), 0)
		}
	}
	if j.begin.Before(j.options.Boot.Add(early)) {
		j.begin = time.Time{}
	}
}

// apply processes an event. It reports false if the device is not known yet.
func (j *Judge) apply(e *collector.Event, now time.Time) bool {
	if e.Past && e.Time.Before(j.options.Boot) {
		return true
	}
	st := j.devices[e.Device]
	switch {
	case e.Device == "":
		if e.Kind == collector.EventDriverLoaded {
			j.loaded = later(j.loaded, e.Time)
		}
	case st == nil:
		return false
	case e.Kind == collector.EventDriverLoaded:
		st.load(e.Time)
	case !st.await(j.catalogue, e, now):
		st.apply(j.catalogue, st.match(e))
	}
	return true
}

// judge sets the verdict of d.
func (j *Judge) judge(s *collector.Snapshot, d *collector.Device) {
	st := j.devices[d.ID]
	st.endWait(j.catalogue, s)
	l := &j.look
	l.at(j.catalogue, d)
	l.peers = slices.ContainsFunc(s.Devices, func(o collector.Device) bool {
		return o.ID != d.ID && o.Parent == "" && o.Class == d.Class && o.Vendor == d.Vendor
	})
	if !st.foreign && l.answers && !l.sampled.Before(j.loaded) {
		st.load(j.loaded)
	}
	st.notice(l, s.Time)
	st.expire(l, s.Time)

	j.found = j.found[:0]
	if f, ok := st.driverFinding(); ok {
		j.found = append(j.found, f)
	}
	j.found = st.conditions(j.catalogue, l, s.Time, j.found)
	for _, f := range st.faults {
		read := slices.ContainsFunc(j.found, func(o finding) bool { return o.Code == f.entry.SameAs })
		if f.entry.SameAs == "" || !read {
			j.found = append(j.found, f.finding(l, st, s.Time))
		}
	}
	if parent := j.devices[d.Parent]; d.Parent != "" && parent != nil {
		j.found = inherit(j.found, parent.findings)
	}
	if code, text := j.unobserved(d, st, l); code != "" {
		st.blind = earliest(st.blind, s.Time)
		j.found = append(j.found, newFinding(code, text, blind, NoAction, rankBlind, st.blind))
	} else {
		st.blind = time.Time{}
	}
	if l.answers && l.driver == NoAction {
		st.ended = s.Time
	}
	st.conclude(j.found, s.Time, d)
	st.publish(d, j.begin)
}

// unobserved returns the reason and its text where the faults of d cannot be observed.
func (j *Judge) unobserved(d *collector.Device, st *device, l *look) (code, text string) {
	sourced := l.examined || d.Class != collector.FPGA && (d.Vendor != "amd" || d.Parent != "" || j.logged)
	st.sourced = st.sourced || l.answers && sourced
	switch {
	case d.Down == collector.ReasonUnbound: // nothing on it can run or fail: degraded
		return "", ""
	case !l.answers && d.Reserved():
		return NoAnswer, "the kernel driver " + d.Driver + " reserves the device for a virtual machine or a program"
	case !l.answers:
		return NoAnswer, "no source has an answer from the device"
	case sourced:
		return "", ""
	case st.sourced:
		return NoAnswer, "the sources of its faults no longer answer"
	case d.Class == collector.FPGA:
		return NoFaultSource, "the driver of the FPGA has no errors to read"
	}
	return NoFaultSource, "neither the driver nor the PCI core counts errors of the GPU, and the kernel log is not read: mount /dev/kmsg and grant CAP_SYSLOG"
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earliest returns a, or b if a is zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}
