package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The first step of a Sampler: what rounds and events do to the state.

// Emit adds an event of a source. It does not block. An Xid that two witnesses
// report is counted once.
func (s *Sampler) Emit(e Event) {
	now := s.Now()
	e.tidy(now)
	s.mu.Lock()
	defer s.touch()
	defer s.mu.Unlock()
	e.Device = cmp.Or(e.Device, e.PCI)
	s.resolve(&e)
	again := false
	for _, st := range s.sources {
		if st.src.Name() != e.Source {
			continue
		}
		if e.Kind == EventDropped {
			st.lost++
			return
		}
		var counted bool
		if counted, again = s.faults.count(&e, s.has(e.Device), now); !counted {
			st.lost++
		}
	}
	if again {
		s.witness(&e)
	} else {
		listed := e
		listed.Record = nil // thousands of events are kept
		s.events = appendLast(s.events, listed, maxEvents)
	}
	s.news = appendLast(s.news, e, maxEvents)
}

// appendLast appends e and keeps the last most events.
func appendLast(list []Event, e Event, most int) []Event {
	if list = append(list, e); len(list) > most {
		list = append(list[:0], list[len(list)-most:]...)
	}
	return list
}

// resolve replaces an address as e.Device by the ID of the device there.
func (s *Sampler) resolve(e *Event) {
	e.Device = cmp.Or(s.addresses[e.Device], e.Device)
	if e.Partition == "" && e.Place != "" {
		e.Partition = s.partition(e.Device, e.Place)
	}
}

// witness adds e, a second report of an event, to the first report, and the
// witnesses of both to e.
func (s *Sampler) witness(e *Event) {
	e.Witnesses = []string{e.Source}
	for i := len(s.events) - 1; i >= 0; i-- {
		o := &s.events[i]
		if o.Kind != e.Kind || o.Device != e.Device || o.Code != e.Code || o.Source == e.Source || slices.Contains(o.Witnesses, e.Source) {
			continue
		}
		// Snapshots share the slices of o, so it gets new ones.
		witnesses := o.Witnesses
		if len(witnesses) == 0 {
			witnesses = []string{o.Source}
		}
		o.Witnesses = append(slices.Clone(witnesses), e.Source)
		o.Sub, o.Detail, o.Action = cmp.Or(o.Sub, e.Sub), cmp.Or(o.Detail, e.Detail), cmp.Or(o.Action, e.Action)
		o.PCI, o.Partition, o.Cause = cmp.Or(o.PCI, e.PCI), cmp.Or(o.Partition, e.Partition), cmp.Or(o.Cause, e.Cause)
		e.Witnesses = o.Witnesses
		return
	}
}

// partition returns the ID of the only partition at a place of a device (see
// Event.Place), or "".
func (s *Sampler) partition(device, place string) string {
	name, found := "MIG-"+device+"/"+place, ""
	for _, st := range s.sources {
		for id, ds := range st.devices {
			if d := &ds.device; d.Parent != device || !slices.ContainsFunc(append([]string{id}, d.KubeIDs...), func(known string) bool {
				return known == name || strings.HasPrefix(known, name+"/")
			}) {
				continue
			}
			if found != "" && found != id {
				return "" // a GPU instance with several compute instances
			}
			found = id
		}
	}
	return found
}

// has reports whether a source has a device of that ID.
func (s *Sampler) has(id string) bool {
	return slices.ContainsFunc(s.sources, func(st *sourceState) bool { return st.devices[id] != nil })
}

// tidy applies the bounds of an event.
func (e *Event) tidy(now time.Time) {
	if !timestamp.Contains(seconds(e.Time)) {
		e.Time = now // the origin has no valid time
	}
	e.Time = anchored(e.Time, now)
	e.Sub, e.Detail = OneLine(e.Sub), OneLine(e.Detail)
	if len(e.Record) > MaxRecord {
		e.Record = nil
	}
}

// OneLine returns s without control characters and of at most MaxDetail bytes.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r == 0x7f:
			return ' '
		case r == utf8.RuneError:
			return '?'
		}
		return r
	}, s)
	if len(s) > MaxDetail {
		s = strings.ToValidUTF8(s[:MaxDetail], "")
	}
	return strings.TrimRight(s, " ")
}

// returned processes the outcome of a finished round.
func (st *sourceState) returned(now time.Time, o outcome, set *Settings) {
	if exit, ok := errors.AsType[*WorkerExit](o.err); ok {
		st.exits.add(1, st.src.Name(), exit.How)
	}
	for _, c := range o.round.Calls {
		st.calls.add(float64(c.Count), st.src.Name(), c.Call, c.Code)
	}
	failed := st.late // counted when it was given up
	st.late = false
	st.status.Stuck = !failed && errors.Is(o.err, context.DeadlineExceeded) && !errors.Is(o.err, ErrBackoff) && len(o.round.Devices) == 0
	if asked(o.err) {
		st.status.Took = o.took
	}
	st.status.Released = errors.Is(o.err, ErrReleased)
	st.status.Err = ""
	if o.err != nil {
		st.status.Err = clipText(o.err.Error())
	}
	// A source that could read nothing has failed. A source that read a part,
	// or found that there is no device, has not.
	if o.err != nil && len(o.round.Devices) == 0 {
		st.fail(reason(o.err), failed)
		return
	}
	st.status.Up, st.status.Reason, st.status.LastSuccess = true, "", now
	if o.err == nil {
		st.rounds[0]++
	} else {
		st.rounds[1]++
	}
	st.node = o.round.Node
	st.accept(now, st.bounded(o.round.Devices), set)
}

// bounded leaves out the new devices that are too many for the state.
func (st *sourceState) bounded(devices []Device) []Device {
	left := maxDevices - len(st.devices)
	kept := slices.DeleteFunc(slices.Clone(devices), func(d Device) bool {
		if st.devices[d.ID] != nil {
			return false
		}
		left--
		return left < 0
	})
	if n := len(devices) - len(kept); n > 0 {
		st.status.Err = clipText(strings.TrimSpace(fmt.Sprintf("%d devices are left out: a source has up to %d. %s", n, maxDevices, st.status.Err)))
	}
	return kept
}

// asked reports whether a round that ended in err has accessed hardware.
func asked(err error) bool {
	return !errors.Is(err, ErrAbsent) && !errors.Is(err, ErrReleased) && !errors.Is(err, ErrBackoff)
}

// overdue records that the round in flight is past its deadline.
func (st *sourceState) overdue() {
	st.late, st.status.Stuck = true, true
	st.status.Err = "round has not returned within its deadline"
	st.fail(SourceTimeout, false)
}

// fail withdraws gauges. A round without hardware, or during a release, does not
// count as failed.
func (st *sourceState) fail(why string, counted bool) {
	st.status.Up, st.status.Reason = false, why
	st.node = staying(st.node)
	if !counted && why != SourceAbsent && why != SourceReleased {
		st.rounds[2]++
	}
}

// staying returns the readings that outlive the failure of their origin.
func staying(readings []Reading) []Reading {
	var out []Reading
	for _, r := range readings {
		if r.Metric.Kind.Stays() {
			out = append(out, r)
		}
	}
	return out
}

// accept merges the devices of a round into the state.
func (st *sourceState) accept(now time.Time, devices []Device, set *Settings) {
	st.recognise(devices)
	present := make(map[string]bool, len(devices))
	slots := make(map[string]bool, len(devices))   // PCI addresses of whole devices
	numbers := make(map[string]bool, len(devices)) // by class
	for i := range devices {
		d := &devices[i]
		present[d.ID] = true
		numbers[string(d.Class)+d.number()] = true
		if d.Parent == "" && d.PCI != "" {
			slots[d.PCI] = true
		}
		d.checkBounds()
		for _, r := range d.Rejects {
			st.rejected.add(1, st.src.Name(), r.Metric.Name, r.Reason)
		}
		ds := st.device(d.ID)
		if d.Down != "" {
			d.remember(&ds.device)
		} else {
			ds.totals.add(d, &ds.device)
			d.keepCounters(&ds.device)
			ds.recalled = false
		}
		ds.device, ds.down, ds.missing = *d, d.Down, time.Time{}
		ds.device.Rejects = nil
	}
	for _, partitions := range []bool{false, true} { // the parents' verdict comes first
		for id, ds := range st.devices {
			if partitions == (ds.device.Parent != "") && !present[id] {
				if !st.absent(ds, slots, now, set.ForgetAfter) {
					delete(st.devices, id)
				} else if numbers[string(ds.device.Class)+ds.device.number()] {
					ds.device.renumbered()
				}
			}
		}
	}
}

// recognise gives devices whose identity could not be read (Passing) the identity
// of the device last seen at their place, unless it is elsewhere now.
func (st *sourceState) recognise(devices []Device) {
	for i := range devices {
		d := &devices[i]
		if !d.Passing || d.Parent != "" {
			continue
		}
		for id, ds := range st.devices {
			elsewhere := slices.ContainsFunc(devices, func(o Device) bool { return o.ID == id })
			if !elsewhere && ds.device.Parent == "" && ds.device.Class == d.Class && ds.device.samePlace(d) {
				d.ID, d.Passing = id, ds.device.Passing
				d.KubeIDs, d.Readings = nil, nil // what was known is more
				break
			}
		}
	}
}

// absent updates a device that the round does not list, and reports whether to
// keep it. A partition whose parent answers was removed by a reconfiguration, a
// device whose slot has another device was replaced, and a device that never
// answered, this process or an earlier one, had no identity. Other devices are
// missing.
func (st *sourceState) absent(ds *deviceState, slots map[string]bool, now time.Time, forget time.Duration) bool {
	d := &ds.device
	if d.Parent == "" && (slots[d.PCI] || d.Passing || d.Class != "" && d.Sampled.IsZero() && !ds.recalled) {
		return false
	}
	if d.Parent != "" {
		parent := st.devices[ds.device.Parent]
		if parent == nil || parent.down == "" {
			return false
		}
		ds.down = parent.down
		return true
	}
	if ds.missing.IsZero() {
		ds.missing = now
	}
	ds.down = ReasonMissing
	return now.Sub(ds.missing) < forget
}

func (st *sourceState) device(id string) *deviceState {
	ds := st.devices[id]
	if ds == nil {
		ds = &deviceState{device: Device{ID: id}}
		st.devices[id] = ds
	}
	return ds
}

// samePlace reports whether d was where o is: at its PCI address or, where o
// has none, at its index.
func (d *Device) samePlace(o *Device) bool {
	if o.PCI != "" {
		return d.PCI == o.PCI
	}
	return len(o.KubeIDs) > 0 && slices.Contains(d.KubeIDs, o.KubeIDs[0])
}

// remember completes d, which does not answer, with the identity and counters of
// its last answer.
func (d *Device) remember(was *Device) {
	d.Parent = cmp.Or(d.Parent, was.Parent)
	d.Class = cmp.Or(d.Class, was.Class)
	d.Vendor = cmp.Or(d.Vendor, was.Vendor)
	d.Model = cmp.Or(d.Model, was.Model)
	d.PCI = cmp.Or(d.PCI, was.PCI)
	if d.KubeIDs == nil {
		d.KubeIDs = was.KubeIDs
	}
	if d.Sampled.Before(was.Sampled) {
		d.Sampled = was.Sampled
	}
	own := d.Readings
	for _, r := range staying(was.Readings) {
		// A newer Info replaces the older one, whatever its labels.
		replaced := func(o Reading) bool { return o.sameSeries(&r) || o.Metric == r.Metric && r.Metric.Kind == Info }
		if !slices.ContainsFunc(own, replaced) {
			d.Readings = append(d.Readings, r)
		}
	}
}

// keepCounters adds to d, which answers, the earlier counters that this round
// could not read.
func (d *Device) keepCounters(was *Device) {
	if slices.EqualFunc(d.Readings, was.Readings, func(a, b Reading) bool { return a.sameSeries(&b) }) {
		return // as in nearly every round
	}
	own := d.Readings
	for _, r := range was.Readings {
		if r.Metric.Kind == Counter && !slices.ContainsFunc(own, func(o Reading) bool { return o.sameSeries(&r) }) {
			d.Readings = append(d.Readings, r)
		}
	}
}
