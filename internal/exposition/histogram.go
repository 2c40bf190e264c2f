package exposition

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/collector"
)

// histograms renders the Distributions of a Snapshot. They are few and seldom
// change, so expfmt writes them, as it writes the process's own families. The
// result is kept until they change.
type histograms struct {
	mu       sync.Mutex
	layout   *layout
	of       []collector.Distribution
	families []*dto.MetricFamily
}

// gather returns the families of s, sorted by name, without those that the
// settings of l drop. The caller must not change them.
func (h *histograms) gather(s *collector.Snapshot, l *layout) []*dto.MetricFamily {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.layout == l && slices.EqualFunc(h.of, s.Distributions, sameDistribution) {
		return h.families
	}
	h.layout = l
	h.of = make([]collector.Distribution, len(s.Distributions))
	named := map[string]*dto.MetricFamily{}
	seen := map[string]bool{}
	for i := range s.Distributions {
		d := &s.Distributions[i]
		h.of[i] = d.Clone()
		key := strings.Join(append([]string{d.Metric.Name, d.Device, d.Parent}, d.Labels...), "\xff")
		if d.Metric.Kind != collector.Histogram || len(d.Counts) != len(d.Metric.Buckets)+1 ||
			len(d.Labels) != len(d.Metric.Labels) || seen[key] || l.settings.drops(d.Metric) {
			continue
		}
		seen[key] = true
		f := named[d.Metric.Name]
		if f == nil {
			f = &dto.MetricFamily{Name: new(d.Metric.Name), Help: new(help(d.Metric)), Type: dto.MetricType_HISTOGRAM.Enum()}
			named[d.Metric.Name] = f
		}
		f.Metric = append(f.Metric, histogramOf(d))
	}
	h.families = h.families[:0:0]
	for _, f := range named {
		slices.SortFunc(f.Metric, func(a, b *dto.Metric) int { return slices.CompareFunc(a.Label, b.Label, compareValue) })
		h.families = append(h.families, f)
	}
	slices.SortFunc(h.families, byName)
	return h.families
}

func sameDistribution(a, b collector.Distribution) bool {
	return a.Metric == b.Metric && a.Device == b.Device && a.Parent == b.Parent && a.Sum == b.Sum &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Counts, b.Counts)
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
// what could not. Families that the page of l already has are left out: a
// client rejects a page on which a name occurs twice.
func (s *self) gather(l *layout) ([]*dto.MetricFamily, error) {
	if s.gatherer == nil {
		return nil, nil
	}
	families, gathered := s.gatherer.Gather()
	err := gathered
	if !slices.IsSortedFunc(families, byName) {
		families = slices.Clone(families)
		slices.SortStableFunc(families, byName)
	}
	last := ""
	excluded := func(f *dto.MetricFamily) bool {
		again := f.GetName() == last || l.has(f.GetName())
		last = f.GetName()
		if again {
			err = errors.Join(err, fmt.Errorf("family %s: registered, but already on the page", last))
		}
		return again || len(f.Metric) == 0
	}
	if slices.ContainsFunc(families, excluded) {
		last, err = "", gathered
		families = slices.DeleteFunc(slices.Clone(families), excluded)
	}
	s.note(err)
	return families, err
}

// beside returns the families that are not part of the layout: the process's
// own and the Snapshot's histograms.
func (e *Exporter) beside(f *frame) ([]*dto.MetricFamily, error) {
	own, err := e.self.gather(f.layout)
	if h := e.histograms.gather(f.of, f.layout); len(h) > 0 {
		own = appendMerged(make([]*dto.MetricFamily, 0, len(h)+len(own)), h, own)
	}
	return own, err
}

// note logs the first error and the first success after it.
func (s *self) note(err error) {
	switch was := s.failing.Swap(err != nil); {
	case err != nil && !was:
		s.log.Error("own metrics are incomplete", "err", err)
	case err == nil && was:
		s.log.Info("own metrics are complete again")
	}
}

func byName(x, y *dto.MetricFamily) int { return strings.Compare(x.GetName(), y.GetName()) }

// has reports whether the page of l has a family of that name.
func (l *layout) has(name string) bool {
	_, ok := slices.BinarySearchFunc(l.families, name, func(f family, name string) int {
		return strings.Compare(f.metric.Name, name)
	})
	return ok
}
