package exposition

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/collector"
)

// gatherHistograms returns the Distributions of a Snapshot as families, sorted by
// name, without the families that the settings drop. They are few, so expfmt writes
// them, as it writes the process's own families.
func gatherHistograms(s *collector.Snapshot, set *Settings) []*dto.MetricFamily {
	var families []*dto.MetricFamily
	named := map[*collector.Metric]*dto.MetricFamily{}
	for i := range s.Distributions {
		d := &s.Distributions[i]
		m := d.Metric
		if m.Kind != collector.Histogram || len(d.Counts) != len(m.Buckets)+1 || len(d.Labels) != len(m.Labels) || set.drops(m) {
			continue
		}
		f := named[m]
		if f == nil {
			f = &dto.MetricFamily{Name: new(m.Name), Help: new(help(m)), Type: dto.MetricType_HISTOGRAM.Enum()}
			named[m], families = f, append(families, f)
		}
		f.Metric = append(f.Metric, histogramOf(d))
	}
	for _, f := range families {
		slices.SortFunc(f.Metric, func(a, b *dto.Metric) int { return slices.CompareFunc(a.Label, b.Label, compareValue) })
	}
	slices.SortFunc(families, byName)
	return families
}

func compareValue(a, b *dto.LabelPair) int { return strings.Compare(a.GetValue(), b.GetValue()) }

func histogramOf(d *collector.Distribution) *dto.Metric {
	h := &dto.Histogram{SampleSum: new(d.Sum)}
	var n uint64
	for i, c := range d.Counts {
		n += c
		bound := math.Inf(1)
		if i < len(d.Metric.Buckets) {
			bound = d.Metric.Buckets[i]
		}
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(n)})
	}
	h.SampleCount = new(n)
	m := &dto.Metric{Histogram: h}
	add := func(name, value string) {
		m.Label = append(m.Label, &dto.LabelPair{Name: new(name), Value: new(strings.ToValidUTF8(value, "�"))})
	}
	if d.Metric.Scope == collector.PerDevice {
		add("device", d.Device)
		if d.Parent != "" {
			add("parent", d.Parent)
		}
	}
	for i, name := range d.Metric.Labels {
		add(name, d.Labels[i])
	}
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return m
}

// appendMerged appends two sorted lists, merged by name. Of equal names the
// family of the first list stays.
func appendMerged(out, a, b []*dto.MetricFamily) []*dto.MetricFamily {
	for _, f := range b {
		for len(a) > 0 && a[0].GetName() < f.GetName() {
			out, a = append(out, a[0]), a[1:]
		}
		if len(a) == 0 || a[0].GetName() != f.GetName() {
			out = append(out, f)
		}
	}
	return append(out, a...)
}

// self gathers the process's own families.
type self struct {
	gatherer prometheus.Gatherer
	log      *slog.Logger
	failing  atomic.Bool
}

// gather returns what can be gathered, sorted by name, and an error that names
// what could not.
func (s *self) gather() ([]*dto.MetricFamily, error) {
	if s.gatherer == nil {
		return nil, nil
	}
	families, err := s.gatherer.Gather()
	s.note(err)
	return families, err
}

// beside returns the families that are not part of the layout: the process's
// own and the Snapshot's histograms.
func (e *Exporter) beside(f *frame) ([]*dto.MetricFamily, error) {
	own, err := e.self.gather()
	if h := gatherHistograms(f.of, &f.layout.settings); len(h) > 0 {
		own = appendMerged(make([]*dto.MetricFamily, 0, len(h)+len(own)), h, own)
	}
	return own, err
}

// note logs the first error and the first success after it.
func (s *self) note(err error) {
	switch was := s.failing.Swap(err != nil); {
	case err != nil && !was:
		s.log.Error("Own metrics are incomplete", "err", err)
	case err == nil && was:
		s.log.Info("Own metrics are complete again")
	}
}

func byName(x, y *dto.MetricFamily) int { return strings.Compare(x.GetName(), y.GetName()) }
