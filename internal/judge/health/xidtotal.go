package health

import (
	"slices"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
)

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
