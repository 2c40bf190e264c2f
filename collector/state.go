package collector

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Bounds on the memory that a source can cause.
const (
	maxUnknown = 64  // devices known by an event only
	maxXids    = 256 // Xid numbers per device
	maxErrText = 2000
)

// sourceState is the state of one source: its latest round, and the counters that
// outlive a device, a round and a worker.
type sourceState struct {
	src     Source
	names   []string // the source's name, as the values of a label
	covers  []Cover
	dists   []Distribution
	wake    chan struct{} // capacity 1: the next round is due now
	status  Status
	node    []Reading // of the latest round; without gauges after a failure
	devices map[string]*deviceState

	begun    time.Time // of the round in flight, zero without one
	late     bool      // the round in flight has been given up
	inFlight bool      // a Sample has outlived the Sampler's loop

	rounds   [3]float64 // by outcome
	exits    cells
	rejected cells
	calls    cells
	lost     float64
}

// newSourceState returns the state before the first round.
func newSourceState(src Source) *sourceState {
	return &sourceState{
		src:      src,
		names:    []string{src.Name()},
		wake:     make(chan struct{}, 1),
		status:   Status{Source: src.Name(), Reason: SourceStarting},
		devices:  map[string]*deviceState{},
		exits:    cells{metric: SourceRestarts},
		rejected: cells{metric: SourceRejected},
		calls:    cells{metric: NativeCallErrors},
	}
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
	if o.round.Distributions != nil {
		st.dists = o.round.Distributions
	}
	st.accept(now, o.round.Devices, set)
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

// render adds the source's own series to a Snapshot and appends its devices to
// observations.
func (st *sourceState) render(snap *Snapshot, observations []observation) []observation {
	snap.Sources = append(snap.Sources, st.status)
	snap.Node = append(snap.Node, st.node...)
	snap.Node = st.ownSeries(snap.Node, snap.Time)
	snap.Distributions = append(snap.Distributions, st.dists...)
	for _, ds := range st.devices {
		if ds.recalled && st.status.Reason == SourceAbsent {
			continue // they may be of another machine
		}
		observations = append(observations, st.observe(ds.render(st.status.Up, snap.Time)))
	}
	return observations
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

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

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func clipText(s string) string {
	if len(s) > maxErrText {
		s = s[:maxErrText] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

// sortDevices sorts by ID, and devices of equal ID by the registration of their
// sources.
func sortDevices(d []Device) {
	slices.SortStableFunc(d, func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
}
