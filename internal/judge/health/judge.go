package health

import (
	"sync/atomic"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Bounds of what is remembered.
const (
	maxFaults    = 32 // of one device
	maxStrangers = 256
	// strangerStays is how long events wait for a Source to find their device.
	strangerStays = time.Hour
)

// Options are what a Judge cannot see in a Snapshot.
type Options struct {
	// Boot is when the node was booted: events of a log that are older do not
	// count. Zero where it is not known.
	Boot time.Time
}

// Judge gives every device its verdict and the families that publish it.
type Judge struct {
	next    atomic.Pointer[Catalogue]
	options Options

	catalogue *Catalogue
	devices   map[string]*device
	strangers int       // devices that only events have told of
	loaded    time.Time // when a driver was last loaded, as far as events told
	round     uint64

	// For one device at a time.
	look  look
	found []finding
}

// New returns a Judge by the catalogue given.
func New(c *Catalogue, o Options) *Judge {
	j := &Judge{options: o, devices: map[string]*device{}}
	j.Apply(c)
	return j
}

// Apply has the Judge go by another catalogue from the next Snapshot on. It may
// be called at any time.
func (j *Judge) Apply(c *Catalogue) { j.next.Store(c) }

// Judge implements collector.Judge.
func (j *Judge) Judge(s *collector.Snapshot) {
	if c := j.next.Load(); c != j.catalogue {
		for _, st := range j.devices {
			st.reread(j.catalogue, c)
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
	}
	for i := range s.News {
		j.hear(&s.News[i], s.Time)
	}
	// A partition inherits, so its parent comes first.
	for _, partitions := range []bool{false, true} {
		for i := range s.Devices {
			if d := &s.Devices[i]; (d.Parent != "") == partitions {
				j.judge(s, d)
			}
		}
	}
	j.forget(s.Time)
}

// hear takes an event.
func (j *Judge) hear(e *collector.Event, now time.Time) {
	if e.Past && e.Time.Before(j.options.Boot) {
		return
	}
	if e.Kind == collector.EventDriverLoaded {
		j.loaded = later(j.loaded, e.Time)
		for _, st := range j.devices {
			st.cure(e.Time)
		}
		return
	}
	if e.Device == "" {
		return
	}
	st := j.devices[e.Device]
	if st == nil {
		if j.strangers >= maxStrangers {
			return
		}
		j.strangers++
		st = newDevice(j.catalogue)
		st.met = now
		j.devices[e.Device] = st
	}
	if !st.await(j.catalogue, e, now) {
		st.hear(j.catalogue, st.meet(e), j.loaded)
	}
}

// of returns the memory of d, with what events told of its address before
// anybody knew who is there.
func (j *Judge) of(d *collector.Device) *device {
	st := j.devices[d.ID]
	if d.Parent == "" {
		if d.PCI != d.ID {
			j.adopt(st, d.PCI)
		}
		for _, f := range d.Functions {
			j.adopt(st, f)
		}
	}
	return st
}

// adopt gives st what was told under an alias that is no device of its own.
func (j *Judge) adopt(st *device, alias string) {
	if o := j.devices[alias]; o != nil && o != st && o.round != j.round {
		st.adopt(o)
		delete(j.devices, alias)
	}
}

// forget drops what the Sampler has forgotten, and events that nobody claims.
func (j *Judge) forget(now time.Time) {
	j.strangers = 0
	for id, st := range j.devices {
		switch {
		case st.round == j.round:
		case st.round != 0 || len(st.faults)+len(st.awaited) == 0 && st.told.IsZero() || now.Sub(st.met) > strangerStays:
			delete(j.devices, id)
		default:
			j.strangers++
		}
	}
}

// judge gives d its verdict.
func (j *Judge) judge(s *collector.Snapshot, d *collector.Device) {
	st := j.of(d)
	st.losePatience(j.catalogue, s, j.loaded)
	l := &j.look
	l.at(j.catalogue, d)
	for _, r := range l.xids {
		st.xids.take(j.catalogue, r)
	}
	st.notice(l, s.Time)
	st.expire(l, s.Time)

	j.found = j.found[:0]
	if f, ok := st.driverSays(); ok {
		j.found = append(j.found, f)
	}
	for _, f := range st.faults {
		j.found = append(j.found, f.finding(l))
	}
	j.found = st.conditions(j.catalogue, l, s.Time, j.found)
	if parent := j.devices[d.Parent]; d.Parent != "" && parent != nil {
		j.found = inherit(j.found, parent.findings)
	}
	if !l.answers {
		st.blind = earliest(st.blind, s.Time)
		j.found = append(j.found, finding{reason: nobodyAnswers, severity: blind, action: NoAction, rank: rankBlind, since: st.blind, text: "no source has an answer of the device"})
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

// earliest returns a, or b where a is not set.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}
