package exposition

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// View adds series that are derived from a Snapshot, under other names.
type View interface {
	// Series returns the series of s. It is called once for each Snapshot that is
	// served, and must be safe for concurrent use.
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

// addView adds the series of the view.
func (b *builder) addView(s *collector.Snapshot) {
	if b.settings.View == nil {
		return
	}
	values := valuesOf(s)
	var in []float64
	for _, d := range b.settings.View.Series(s) {
		labels, ok := pairs(slices.DeleteFunc(slices.Clone(d.Labels), func(l Label) bool { return l.Value == "" }))
		if !ok || !fits(&d, len(values)) {
			b.dropped[invalid]++
			continue
		}
		f := b.family(d.Metric)
		if f == nil {
			b.dropped[invalid]++
			continue
		}
		in = in[:0]
		for _, row := range d.Rows {
			in = append(in, values[row])
		}
		if v, ok := d.Value(in); ok {
			f.series = append(f.series, series{labels, v, rankView})
		}
	}
}

// fits reports whether d is valid on a page of so many rows.
func fits(d *Derived, rows int) bool {
	if d.Metric == nil || d.Value == nil || d.Metric.Kind == collector.Histogram {
		return false
	}
	return !slices.ContainsFunc(d.Rows, func(r int) bool { return r < 0 || r >= rows })
}

// valuesOf returns the values of every reading of s.
func valuesOf(s *collector.Snapshot) []float64 {
	var values []float64
	for i := range s.Devices {
		for j := range s.Devices[i].Readings {
			values = append(values, s.Devices[i].Readings[j].Value)
		}
	}
	for i := range s.Node {
		values = append(values, s.Node[i].Value)
	}
	return values
}
