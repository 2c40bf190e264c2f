package health

import (
	"slices"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
)

// xidKinds are the values of the label kind of accel_gpu_xid_events_total; what
// belongs to no other is of the last.
var (
	xidKinds      = []string{"hardware", "application", "other"}
	xidKindLabels = each(xidKinds)
)

// xidTotals adds the Xids of one GPU up by kind. It takes increases of the
// counters by number: another catalogue moves nothing that has been counted.
type xidTotals struct {
	counted map[string]float64 // by number
	sums    []float64          // by kind; nil for what has no Xids
}

// take adds what r, a reading of accel_gpu_xid_errors_total, has grown by.
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

// xidKind returns the position in xidKinds of an Xid's number.
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
