package exposition

import (
	"math"
	"slices"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
)

// frame is the working memory of one scrape.
type frame struct {
	layout  *layout
	of      *collector.Snapshot
	values  []float64 // by position on the page
	raw, in []float64 // of the readings, for derived series
	page    page
}

var frames = sync.Pool{New: func() any { return new(frame) }}

func newFrame() *frame { return frames.Get().(*frame) }

func (f *frame) release() {
	f.layout, f.of, f.page.out = nil, nil, nil
	frames.Put(f)
}

// fill copies the values of s to their positions. It reports false where s has
// another shape than l; some values are copied then.
func (l *layout) fill(s *collector.Snapshot, f *frame) bool {
	f.values = slices.Grow(f.values[:0], l.series)[:l.series]
	old := l.shape.Load()
	if old == nil {
		old = s // l has just been built from s
	}
	if len(s.Devices) != len(old.Devices) || len(s.Node) != len(old.Node) {
		return false
	}
	slots := l.slots
	for i := range s.Devices {
		d, was := &s.Devices[i], &old.Devices[i]
		if d.ID != was.ID || d.Parent != was.Parent || d.Attention != was.Attention || len(d.Readings) != len(was.Readings) {
			return false
		}
		if !scatter(f.values, slots, d.Readings, was.Readings) {
			return false
		}
		slots = slots[len(d.Readings):]
	}
	if !scatter(f.values, slots, s.Node, old.Node) || !l.derive(s, f) {
		return false
	}
	for _, at := range l.hides {
		if f.values[at] == 0 {
			f.values[at] = absent
		}
	}
	if old != s || l.shape.Load() == nil {
		l.shape.Store(s)
	}
	return true
}

// absent is the value of a series that is not on the page now. No reading is a
// NaN.
var absent = math.Float64frombits(0x7ff8_0000_0000_0ab5)

// Absent reports whether a value of Page.Values stands for a series that is not on
// the page now.
func Absent(v float64) bool { return math.Float64bits(v) == math.Float64bits(absent) }

// scatter copies the values of now. It reports false where now and was are not
// readings of the same series.
func scatter(values []float64, slots []int32, now, was []collector.Reading) bool {
	for i := range now {
		r, w := &now[i], &was[i]
		if r.Metric != w.Metric || !sameLabels(r.Labels, w.Labels) {
			return false
		}
		if at := slots[i]; at >= 0 {
			values[at] = r.Value
		}
	}
	return true
}

// sameLabels compares by pointer first: Snapshots of one shape share most label
// slices.
func sameLabels(x, y []string) bool {
	if len(x) != len(y) {
		return false
	}
	return len(x) == 0 || &x[0] == &y[0] || slices.Equal(x, y)
}
