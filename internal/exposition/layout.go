package exposition

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accel-exporter/accel-exporter/collector"
)

// layout is a page without its values: the series, their order and their
// labels. It fits every Snapshot of the same shape, which has the same devices
// with the same readings in the same order.
type layout struct {
	// shape is the latest Snapshot known to fit. Unlike the Snapshot that the
	// layout was built from, it keeps no old Snapshot in memory, and it
	// shares most label slices with the next Snapshot, which are then equal by
	// pointer.
	shape atomic.Pointer[collector.Snapshot]
	// slots has the position on the page of every reading of the Snapshot,
	// devices first, then the node, or noSlot.
	slots    []int32
	derived  []derivedSeries // of the view
	families []family        // sorted by name
	blocks   blocks
	// hides are the positions that are not on the page while their value is 0.
	hides []int32
	// block is the label block of every position on the page.
	block  []int32
	series int
	// own is the position of the first of the exporter's own counters.
	own      int
	dropped  [len(reasons)]uint64
	settings Settings // it was built with

	// headsOf has the comment blocks of the families, by format.
	headsOf [formats]struct {
		once  sync.Once
		heads [][]byte
	}
}

const noSlot = -1

// family is a run of positions.
type family struct {
	metric     *collector.Metric
	begin, end int
}

// candidate is a series on its way to the page.
type candidate struct {
	family int
	row    int // position among the readings of the Snapshot, then the derived series, or ownRow
	labels []Label
	rank   rank
	hides  bool // while its value is 0
}

// newLayout builds the layout for s. The series of the view come last: of
// equal series the Snapshot's own stays.
func newLayout(s *collector.Snapshot, set *Settings) *layout {
	b := builder{families: make(map[string]int), settings: set}
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Readings {
			b.add(d, &d.Readings[j])
		}
	}
	for i := range s.Node {
		b.add(nil, &s.Node[i])
	}
	b.addView(s)
	l := &layout{slots: b.slots, derived: b.derived, settings: *set}
	b.sort()
	b.dedup()
	b.limit(set.MaxSeries)
	l.dropped = b.dropped
	b.own()
	b.place(l)
	return l
}

// builder collects the series of one Snapshot.
type builder struct {
	metrics    []*collector.Metric
	settings   *Settings
	families   map[string]int // by name, into metrics
	candidates []candidate
	slots      []int32
	derived    []derivedSeries
	dropped    [len(reasons)]uint64
}

func (b *builder) add(d *collector.Device, r *collector.Reading) {
	row := len(b.slots)
	b.slots = append(b.slots, noSlot)
	if r.Metric == nil || r.Metric.Kind == collector.Histogram {
		b.dropped[invalid]++
		return
	}
	i, seen := b.families[r.Metric.Name]
	if !seen {
		if b.settings.drops(r.Metric) {
			return
		}
		i = len(b.metrics)
		b.families[r.Metric.Name] = i
		b.metrics = append(b.metrics, r.Metric)
	}
	// A second row of the same name would give one family two meanings.
	if b.metrics[i] != r.Metric || r.Metric == ownMetric {
		b.dropped[invalid]++
		return
	}
	labels, ok := labelsOf(d, r)
	if !ok || !validName(r.Metric.Name) {
		b.dropped[invalid]++
		return
	}
	standard := b.settings.Standard && (d == nil || !d.Attention)
	if standard && !r.Metric.Serves(r.Labels) {
		return
	}
	b.candidates = append(b.candidates, candidate{
		family: i, row: row, labels: labels, rank: rankOf(d, r.Metric),
		hides: standard && r.Metric.Level.HidesZero(),
	})
}

// sort orders the candidates as client_golang's registry does: by family name,
// number of labels, label values. Of equal series the first measured stays
// first.
func (b *builder) sort() {
	slices.SortStableFunc(b.candidates, func(x, y candidate) int {
		if x.family != y.family {
			return strings.Compare(b.metrics[x.family].Name, b.metrics[y.family].Name)
		}
		return compareLabels(x.labels, y.labels)
	})
}

func compareLabels(x, y []Label) int {
	if len(x) != len(y) {
		return cmp.Compare(len(x), len(y))
	}
	for i := range x {
		if c := strings.Compare(x[i].Value, y[i].Value); c != 0 {
			return c
		}
	}
	for i := range x { // the names of derived series may differ
		if c := strings.Compare(x[i].Name, y[i].Name); c != 0 {
			return c
		}
	}
	return 0
}

// dedup keeps the first of equal series.
func (b *builder) dedup() {
	kept := b.candidates[:0]
	for _, c := range b.candidates {
		if n := len(kept); n > 0 && kept[n-1].family == c.family && compareLabels(kept[n-1].labels, c.labels) == 0 {
			b.dropped[duplicate]++
			continue
		}
		kept = append(kept, c)
	}
	b.candidates = kept
}

// own adds the exporter's own counters. No limit applies to them.
func (b *builder) own() {
	i := len(b.metrics)
	b.metrics = append(b.metrics, ownMetric)
	at, _ := slices.BinarySearchFunc(b.candidates, ownMetric.Name, func(c candidate, name string) int {
		return strings.Compare(b.metrics[c.family].Name, name)
	})
	var rows []candidate
	for r, name := range reasons {
		rows = append(rows, candidate{family: i, row: ownRow - r, labels: []Label{{"reason", name}}})
	}
	b.candidates = slices.Insert(b.candidates, at, rows...)
}

// ownRow marks a series without a reading.
const ownRow = -1

// place gives every candidate its position.
func (b *builder) place(l *layout) {
	l.block = make([]int32, len(b.candidates))
	l.series = len(b.candidates)
	intern := newInterner(&l.blocks)
	for at, c := range b.candidates {
		if at == 0 || b.candidates[at-1].family != c.family {
			l.families = append(l.families, family{metric: b.metrics[c.family], begin: at})
		}
		l.families[len(l.families)-1].end = at + 1
		l.block[at] = intern.block(c.labels)
		if c.hides {
			l.hides = append(l.hides, int32(at))
		}
		switch {
		case c.row == ownRow:
			l.own = at
		case c.row >= len(l.slots):
			l.derived[c.row-len(l.slots)].at = int32(at)
		case c.row >= 0:
			l.slots[c.row] = int32(at)
		}
	}
	l.families = slices.Clip(l.families)
	l.slots = slices.Clip(l.slots)
}
