package exposition

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// View adds series that are derived from a Snapshot, under other names.
type View interface {
	// Series returns the series of s. It is called once for each Snapshot that is
	// served, and must be safe for concurrent use. The caller owns the result.
	Series(s *collector.Snapshot) []Derived
}

// Derived is a series whose Value is computed from readings of the Snapshot.
type Derived struct {
	// Metric has name, help and kind. It is not part of collector's table. Its
	// Labels are not used: series of one family may have different labels.
	Metric *collector.Metric
	// Labels are in any order. Labels with an empty value are left out, which
	// means the same to Prometheus.
	Labels []Label
	Value  float64
}

// addView adds the series of the view.
func (b *builder) addView(s *collector.Snapshot) {
	if b.settings.View == nil {
		return
	}
	for _, d := range b.settings.View.Series(s) {
		labels, ok := pairs(slices.DeleteFunc(d.Labels, func(l Label) bool { return l.Value == "" }))
		f := b.family(d.Metric)
		if !ok || f == nil {
			b.dropped[invalid]++
			continue
		}
		f.series = append(f.series, series{newMetric(d.Metric, labels, d.Value), rankView})
	}
}
