package health

import (
	"slices"
	"strconv"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// outage measures the time of a device from failed to healthy.
type outage struct {
	since    time.Time // when it failed; zero if it has not
	failures float64
	lasted   *collector.Distribution
	shown    collector.Distribution // copy of lasted that Snapshots share
}

// note records the state of the device with the given ID. The histogram exists
// from the first failure on, so that the first recovery is an increase and a
// device that never failed costs nothing.
func (o *outage) note(state, device string, now time.Time) {
	switch state {
	case "failed":
		if o.since.IsZero() {
			o.since = now
			o.failures++
		}
		o.begin(device)
	case "healthy":
		if !o.since.IsZero() {
			o.begin(device)
			o.lasted.Observe(now.Sub(o.since).Seconds())
			o.shown, o.since = o.lasted.Clone(), time.Time{}
		}
	}
}

func (o *outage) begin(device string) {
	if o.lasted == nil {
		o.lasted = collector.NewDistribution(collector.DeviceRecovery, device)
		o.shown = o.lasted.Clone()
	}
}

var (
	stateLabels  = each(states)
	actionLabels = each(actions)
)

// each returns label slices with one value each, which all Snapshots share.
func each(values []string) [][]string {
	out := make([][]string, len(values))
	for i, v := range values {
		out[i] = []string{v}
	}
	return out
}

// publish adds the verdict and its families to the Snapshot.
func (st *device) publish(s *collector.Snapshot, d *collector.Device) {
	v := st.verdict
	d.Verdict = v
	r := d.Readings
	if most := len(r) + len(states) + len(actions) + len(st.reasons) + len(st.xids.sums) + 2; cap(r) < most {
		r = append(make([]collector.Reading, 0, most), r...)
	}
	for i, state := range states {
		r = append(r, collector.Reading{Metric: collector.DeviceHealth, Labels: stateLabels[i], Value: boolValue(state == v.State)})
	}
	for _, labels := range st.reasons {
		r = append(r, collector.Reading{Metric: collector.DeviceHealthReason, Labels: labels, Value: 1})
	}
	if d.Parent == "" {
		// A partition is repaired through its parent.
		for i := NoAction; i < numberOfActions; i++ {
			r = append(r, collector.Reading{Metric: collector.DeviceAction, Labels: actionLabels[i], Value: boolValue(actions[i] == v.Action)})
		}
		if r = st.xids.publish(r); st.xids.sums != nil {
			r = append(r, collector.Reading{Metric: collector.XidIncidents, Value: st.incidents})
		}
		r = append(r, collector.Reading{Metric: collector.DeviceFailures, Value: st.outage.failures})
		if st.outage.lasted != nil {
			s.Distributions = append(s.Distributions, st.outage.shown)
		}
	}
	d.Readings = r
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// xidKinds are the values of the label kind of accel_gpu_xid_events_total; the
// last one is the default.
var (
	xidKinds      = []string{"hardware", "application", "other"}
	xidKindLabels = each(xidKinds)
)

// xidTotals sums the Xids of one GPU by kind. It adds increases of the counters
// by number, so a new catalogue does not change past counts.
type xidTotals struct {
	counted map[string]float64 // by number
	sums    []float64          // by kind; nil for what has no Xids
}

// take adds the increase of r, a reading of accel_gpu_xid_errors_total.
func (x *xidTotals) take(c *Catalogue, r *collector.Reading) {
	if x.sums == nil {
		x.counted, x.sums = map[string]float64{}, make([]float64, len(xidKinds))
	}
	before := x.counted[r.Labels[0]]
	if r.Value == before {
		return
	}
	x.counted[r.Labels[0]] = r.Value
	if r.Value > before {
		x.sums[c.xidKind(r.Labels[0])] += r.Value - before
	}
}

// xidKind returns the index in xidKinds of an Xid number.
func (c *Catalogue) xidKind(number string) int {
	other := len(xidKinds) - 1
	code, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return other
	}
	entry, _ := c.lookup(&collector.Event{Kind: collector.EventXid, Code: code})
	if i := slices.Index(xidKinds, entry.Total); i >= 0 {
		return i
	}
	return other
}

// publish appends the totals to out.
func (x *xidTotals) publish(out []collector.Reading) []collector.Reading {
	for i, sum := range x.sums {
		out = append(out, collector.Reading{Metric: collector.XidEvents, Labels: xidKindLabels[i], Value: sum})
	}
	return out
}
