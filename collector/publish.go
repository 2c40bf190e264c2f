package collector

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// The last step of a Sampler: a Snapshot of the state. merge.go has the step between.

func (s *Sampler) publish(now time.Time) {
	s.mu.Lock()
	s.seq++
	s.follow(now)
	snap := &Snapshot{Seq: s.seq, Time: now}
	var observations []observation
	for _, st := range s.sources {
		observations = st.render(snap, observations)
	}
	snap.Devices = s.merge(observations)
	s.settle(snap.Devices)
	snap.Events = slices.Clone(s.events[max(0, len(s.events)-shownEvents):])
	snap.News, s.news = s.news, nil
	s.faults.attach(snap)
	s.mu.Unlock()
	sortDevices(snap.Devices)
	for _, j := range s.judges {
		judge(j, snap)
	}
	s.latest.Store(snap)
	if !snap.Again.IsZero() {
		time.AfterFunc(snap.Again.Sub(now), s.touch)
	}
	s.mu.Lock()
	waiters := s.waiters
	s.waiters = nil
	s.mu.Unlock()
	for _, w := range waiters {
		close(w)
	}
}

// judge calls a Judge. A panic costs the node its conclusions, not its monitoring.
func judge(j Judge, snap *Snapshot) {
	defer func() {
		if p := recover(); p != nil {
			snap.Panics = append(snap.Panics, fmt.Sprintf("%T: %v\n%s", j, p, debug.Stack()))
		}
	}()
	j.Judge(snap)
}

// follow moves the times of past events with the clock.
func (s *Sampler) follow(now time.Time) {
	last := s.latest.Load()
	if last == nil {
		return
	}
	if by := ClockSet(last.Time, now); by != 0 {
		s.faults.clockSet(by)
		for i := range s.events {
			s.events[i].Time = OnClock(s.events[i].Time, now)
		}
	}
}

// settle gives a device what was reported for its addresses: their counts of events,
// and their events, which are reported again.
func (s *Sampler) settle(devices []Device) {
	s.addresses = map[string]string{}
	for i := range devices {
		d := &devices[i]
		if d.Parent != "" || d.PCI == "" {
			continue
		}
		for _, address := range append([]string{d.PCI}, d.Functions...) {
			s.addresses[address] = d.ID
			if o := s.faults[address]; o != nil && address != d.ID {
				s.faults.of(d.ID).adopt(o)
				delete(s.faults, address)
			}
		}
	}
	renamed := func(e Event) bool { return cmp.Or(s.addresses[e.Device], e.Device) != e.Device }
	s.news = slices.DeleteFunc(s.news, renamed)
	for i := range s.events {
		if e := &s.events[i]; renamed(*e) {
			s.resolve(e)
			again := *e
			again.Witnesses = nil // to judges the event is new
			s.news = appendLast(s.news, again, maxEvents)
		}
	}
}

// render adds the source's own series to a Snapshot and appends its devices to
// observations.
func (st *sourceState) render(snap *Snapshot, observations []observation) []observation {
	snap.Sources = append(snap.Sources, st.status)
	snap.Node = append(snap.Node, st.node...)
	snap.Node = st.ownSeries(snap.Node, snap.Time)
	for _, ds := range st.devices {
		if ds.recalled && st.status.Reason == SourceAbsent {
			continue // they may be of another machine
		}
		observations = append(observations, st.observe(ds.render(st.status.Up, snap.Time)))
	}
	return observations
}

// ownSeries appends the series about the source itself.
func (st *sourceState) ownSeries(out []Reading, now time.Time) []Reading {
	name := st.names
	out = append(out, Reading{SourceUp, []string{st.src.Name(), st.status.Reason}, boolValue(st.status.Up)})
	if st.idle() {
		return out
	}
	out = append(out,
		Reading{SourceReleasedMetric, name, boolValue(st.status.Released)},
		Reading{SourceStuck, name, boolValue(st.status.Stuck)},
		Reading{SourceEventsLost, name, st.lost},
	)
	if st.status.Took > 0 {
		out = append(out, Reading{SourceDuration, name, st.status.Took.Seconds()})
	}
	if !st.status.LastSuccess.IsZero() {
		out = append(out, Reading{SourceAge, name, max(0, now.Sub(st.status.LastSuccess).Seconds())})
	}
	for i, outcome := range []string{"ok", "partial", "failed"} {
		out = append(out, Reading{SourceRounds, []string{st.src.Name(), outcome}, st.rounds[i]})
	}
	// From zero, so that a rate over the sum counts the first exit too.
	if _, worker := st.src.(*Process); worker {
		out = append(out, Reading{SourceRestarts, []string{st.src.Name(), "none"}, 0})
	}
	out = append(out, st.exits.list...)
	out = append(out, st.rejected.list...)
	return append(out, st.calls.list...)
}

// idle reports whether the source has found nothing to read since the start. The
// reason of accel_source_up is then all that is known of it.
func (st *sourceState) idle() bool {
	switch st.status.Reason {
	case SourceAbsent, SourceStarting:
		return !st.status.Stuck && st.rounds == [3]float64{} && st.lost == 0 && len(st.exits.list) == 0
	}
	return false
}

// additions is about what witnesses, events and judges add to a whole device.
const additions = 128

// render returns the device as published: every reading while the device
// answers, else the readings whose Kind stays.
func (ds *deviceState) render(sourceUp bool, now time.Time) Device {
	d := ds.device
	d.Sampled = OnClock(d.Sampled, now)
	d.Down = ds.down
	up := sourceUp && ds.down == "" && d.Class != ""
	size := len(d.Readings) + len(ds.totals) + 2
	if !d.Witness && d.Parent == "" {
		size += additions
	}
	readings := make([]Reading, 0, size)
	for _, r := range d.Readings {
		if up || r.Metric.Kind.Stays() {
			readings = append(readings, r)
		}
	}
	readings = append(readings, ds.totals...)
	if d.Witness {
		d.Readings = readings // a witness does not know whether the device answers
		return d
	}
	if sourceUp && d.Class != "" {
		readings = append(readings, Reading{DeviceUp, []string{ds.down}, boolValue(up)})
	}
	if !d.Sampled.IsZero() {
		readings = append(readings, Reading{DeviceSampleTime, nil, seconds(d.Sampled)})
	}
	d.Readings = readings
	return d
}

// attach adds event counts to the devices of a Snapshot, and devices that only
// events have named.
func (f faults) attach(s *Snapshot) {
	present := make(map[string]bool, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		present[d.ID] = true
		if d.Parent != "" {
			continue
		}
		if d.Vendor == "nvidia" && d.Class == GPU && !d.Witness {
			f.of(d.ID).begin()
		}
		if h := f[d.ID]; h != nil {
			h.seen = true
			d.Readings = h.append(d.Readings)
		}
	}
	for id, h := range f {
		switch {
		case present[id]:
		case h.seen:
			delete(f, id) // the device has been forgotten
		default:
			s.Devices = append(s.Devices, h.unknownDevice(id))
		}
	}
}

func (h *history) append(out []Reading) []Reading {
	for _, c := range []*cells{&h.xids, &h.last, &h.sxids, &h.events} {
		out = append(out, c.list...)
	}
	return out
}

// unknownDevice returns a device that only events have named.
func (h *history) unknownDevice(id string) Device {
	d := Device{ID: id, Readings: h.append(nil)}
	if len(h.sxids.list) > 0 {
		d.Class, d.Vendor, d.PCI = Switch, "nvidia", id
	}
	return d
}

// sortDevices sorts by ID, and devices of equal ID by the registration of their
// sources.
func sortDevices(d []Device) {
	slices.SortStableFunc(d, func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
