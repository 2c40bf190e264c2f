package exposition

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Gatherer returns every family of the page as client_model types: what
// promhttp answers from, and tests and linters read.
func (e *Exporter) Gatherer() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		f := newFrame()
		defer f.release()
		e.snapshot(f)
		own, err := e.beside(f)
		return appendMerged(nil, f.gather(), own), err
	})
}

// gather converts the page in f. The result shares nothing with f.
func (f *frame) gather() []*dto.MetricFamily {
	l := f.layout
	labels := make([][]*dto.LabelPair, l.blocks.len())
	for i := range labels {
		for _, lab := range parseBlock(l.blocks.at(int32(i))) {
			labels[i] = append(labels[i], &dto.LabelPair{Name: new(lab.name), Value: new(lab.value)})
		}
	}
	families := make([]*dto.MetricFamily, 0, len(l.families))
	for _, fam := range l.families {
		out := &dto.MetricFamily{
			Name: new(fam.metric.Name),
			Help: new(help(fam.metric)),
			Type: dto.MetricType_GAUGE.Enum(),
		}
		counter := fam.metric.Kind.Type() == "counter"
		if counter {
			out.Type = dto.MetricType_COUNTER.Enum()
		}
		for at := fam.begin; at < fam.end; at++ {
			m := &dto.Metric{Label: labels[l.block[at]]}
			if counter {
				m.Counter = &dto.Counter{Value: new(f.values[at])}
			} else {
				m.Gauge = &dto.Gauge{Value: new(f.values[at])}
			}
			out.Metric = append(out.Metric, m)
		}
		families = append(families, out)
	}
	return families
}
