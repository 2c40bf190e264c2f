package exposition

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// View adds series that are derived from a Snapshot, under other names.
type View interface {
	// Series returns the series for every Snapshot of the shape of s: with the
	// same devices and readings, whatever their values. It is called when the
	// shape changes, not at each scrape, and by one goroutine at a time.
	Series(s *collector.Snapshot) []Derived
}

// Derived is a series whose value is computed from readings of the Snapshot.
type Derived struct {
	// Metric has name, help and kind. It is not part of collector's table. Its
	// Labels are not used: series of one family may have different labels.
	Metric *collector.Metric
	// Labels are in any order. Labels with an empty value are left out, which
	// means the same to Prometheus.
	Labels []Label
	// Rows are positions of the readings that Value needs: the readings of all
	// devices in their order, then the readings of the node.
	Rows []int
	// Value computes the value from the values of Rows. It returns ok false
	// where there is no value now. It must depend on in alone and not keep it.
	Value func(in []float64) (v float64, ok bool)
}

// derivedSeries is a Derived series in a layout.
type derivedSeries struct {
	at    int32 // noSlot where it has no value, or is left out
	ok    bool  // it had a value when the layout was built
	rows  []int
	value func(in []float64) (float64, bool)
}

// addView adds the series of the view.
func (b *builder) addView(s *collector.Snapshot) {
	if b.settings.View == nil {
		return
	}
	raw := rawValues(nil, s)
	var in []float64
	for _, d := range b.settings.View.Series(s) {
		labels := slices.DeleteFunc(slices.Clone(d.Labels), func(l Label) bool { return l.Value == "" })
		if !sortLabels(labels) || !fits(&d, len(raw)) {
			b.dropped[invalid]++
			continue
		}
		i, seen := b.families[d.Metric.Name]
		if !seen {
			i = len(b.metrics)
			b.families[d.Metric.Name] = i
			b.metrics = append(b.metrics, d.Metric)
		}
		if b.metrics[i] != d.Metric {
			b.dropped[invalid]++
			continue
		}
		in = inputs(in, d.Rows, raw)
		_, there := d.Value(in)
		b.derived = append(b.derived, derivedSeries{at: noSlot, ok: there, rows: d.Rows, value: d.Value})
		if there {
			row := len(b.slots) + len(b.derived) - 1
			b.candidates = append(b.candidates, candidate{family: i, row: row, labels: labels, rank: rankView})
		}
	}
}

// fits reports whether d is valid on a page of so many rows.
func fits(d *Derived, rows int) bool {
	if d.Metric == nil || d.Value == nil || d.Metric.Kind == collector.Histogram || d.Metric == ownMetric || !validName(d.Metric.Name) {
		return false
	}
	return !slices.ContainsFunc(d.Rows, func(r int) bool { return r < 0 || r >= rows })
}

// rawValues appends the values of every reading of s.
func rawValues(to []float64, s *collector.Snapshot) []float64 {
	for i := range s.Devices {
		for j := range s.Devices[i].Readings {
			to = append(to, s.Devices[i].Readings[j].Value)
		}
	}
	for i := range s.Node {
		to = append(to, s.Node[i].Value)
	}
	return to
}

func inputs(to []float64, rows []int, raw []float64) []float64 {
	to = to[:0]
	for _, r := range rows {
		to = append(to, raw[r])
	}
	return to
}

// derive computes the values of derived series. It reports false where a value
// exists that did not when l was built, or the reverse.
func (l *layout) derive(s *collector.Snapshot, f *frame) bool {
	if len(l.derived) == 0 {
		return true
	}
	f.raw = rawValues(f.raw[:0], s)
	for i := range l.derived {
		d := &l.derived[i]
		f.in = inputs(f.in, d.rows, f.raw)
		v, ok := d.value(f.in)
		if ok != d.ok {
			return false
		}
		if d.at >= 0 {
			f.values[d.at] = v
		}
	}
	return true
}
