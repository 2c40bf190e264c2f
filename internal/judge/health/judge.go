package health

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Limits on the state.
const (
	maxFaults  = 32 // per device
	maxUnknown = 256
	// unknownTTL is how long events wait for a Source to find their device.
	unknownTTL = time.Hour
)

// Options are inputs of a Judge that are not in a Snapshot.
type Options struct {
	// Boot is when the node was booted: older events of a log do not count. Zero
	// if unknown.
	Boot time.Time
}

// Judge sets the verdict of every device and the families that publish it.
type Judge struct {
	next    atomic.Pointer[Catalogue]
	options Options

	catalogue *Catalogue
	devices   map[string]*device
	unknown   int       // devices that are known from events only
	loaded    time.Time // when NVIDIA's driver was last loaded, by events
	round     uint64

	// Scratch space for one device at a time.
	look  look
	found []finding
}

// New returns a Judge that uses the catalogue c.
func New(c *Catalogue, o Options) *Judge {
	j := &Judge{options: o, devices: map[string]*device{}}
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
			st.setCatalogue(j.catalogue, c)
		}
		j.catalogue = c
		j.look.hits = make([]hit, len(c.conditions))
	}
	j.round++
	for i := range s.Devices {
		id := s.Devices[i].ID
		if j.devices[id] == nil {
			j.devices[id] = newDevice(j.catalogue)
		}
		j.devices[id].round = j.round
		j.devices[id].foreign = s.Devices[i].Vendor != "nvidia"
	}
	for i := range s.News {
		j.apply(&s.News[i], s.Time)
	}
	// A partition inherits from its parent, so parents come first.
	for _, partitions := range []bool{false, true} {
		for i := range s.Devices {
			if d := &s.Devices[i]; (d.Parent != "") == partitions {
				j.judge(s, d)
			}
		}
	}
	j.forget(s.Time)
}

// apply processes an event.
func (j *Judge) apply(e *collector.Event, now time.Time) {
	if e.Past && e.Time.Before(j.options.Boot) {
		return
	}
	st := j.devices[e.Device]
	if e.Kind == collector.EventDriverLoaded {
		if e.Device == "" {
			j.loaded = later(j.loaded, e.Time)
			for _, st := range j.devices {
				if !st.foreign {
					st.cure(e.Time, true)
				}
			}
		} else if st != nil {
			st.loaded = later(st.loaded, e.Time)
			st.cure(e.Time, true)
		}
		return
	}
	if e.Device == "" {
		return
	}
	if st == nil {
		if j.unknown >= maxUnknown {
			return
		}
		j.unknown++
		st = newDevice(j.catalogue)
		st.met = now
		j.devices[e.Device] = st
	}
	if !st.await(j.catalogue, e, now) {
		st.apply(j.catalogue, st.match(e), j.loadOf(st))
	}
}

// loadOf returns when the driver of a device was last loaded. Only NVIDIA's driver is
// loaded without a line for each device.
func (j *Judge) loadOf(st *device) time.Time {
	if st.foreign {
		return st.loaded
	}
	return later(j.loaded, st.loaded)
}

// stateOf returns the state of d, including events that were reported for its PCI
// address before the device was found.
func (j *Judge) stateOf(d *collector.Device) *device {
	st := j.devices[d.ID]
	if d.Parent == "" {
		if d.PCI != d.ID {
			j.merge(st, d.PCI)
		}
		for _, f := range d.Functions {
			j.merge(st, f)
		}
	}
	return st
}

// merge adds the events of an alias that is not a device itself to st.
func (j *Judge) merge(st *device, alias string) {
	if o := j.devices[alias]; o != nil && o != st && o.round != j.round {
		st.merge(o)
		delete(j.devices, alias)
	}
}

// forget drops devices that the Sampler has forgotten, and events without a
// device.
func (j *Judge) forget(now time.Time) {
	j.unknown = 0
	for id, st := range j.devices {
		switch {
		case st.round == j.round:
		case st.round != 0 || len(st.faults)+len(st.awaited) == 0 && st.driverAt.IsZero() || now.Sub(st.met) > unknownTTL:
			delete(j.devices, id)
		default:
			j.unknown++
		}
	}
}

// judge sets the verdict of d.
func (j *Judge) judge(s *collector.Snapshot, d *collector.Device) {
	st := j.stateOf(d)
	st.endWait(j.catalogue, s, j.loadOf(st))
	l := &j.look
	l.at(j.catalogue, d)
	l.peers = slices.ContainsFunc(s.Devices, func(o collector.Device) bool {
		return o.ID != d.ID && o.Parent == "" && o.Class == d.Class && o.Vendor == d.Vendor
	})
	for _, r := range l.xids {
		st.xids.take(j.catalogue, r)
	}
	st.notice(l, s.Time)
	st.expire(l, s.Time)

	j.found = j.found[:0]
	if f, ok := st.driverFinding(); ok {
		j.found = append(j.found, f)
	}
	for _, f := range st.faults {
		j.found = append(j.found, f.finding(l, st, s.Time))
	}
	j.found = st.conditions(j.catalogue, l, s.Time, j.found)
	if parent := j.devices[d.Parent]; d.Parent != "" && parent != nil {
		j.found = inherit(j.found, parent.findings)
	}
	if !l.answers {
		st.blind = earliest(st.blind, s.Time)
		j.found = append(j.found, finding{reason: noAnswer, severity: blind, action: NoAction, rank: rankBlind, since: st.blind, text: "no source has an answer from the device"})
	} else {
		st.blind = time.Time{}
	}
	st.conclude(j.found, s.Time, d)
	st.publish(s, d)
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
