package exposition

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Page is the content of the page for a reader in this process: the series and
// values that a scrape returns, without their text. The zero value is ready
// for Exporter.Read.
type Page struct {
	// Values are the values of the series of devices and node, in the order
	// of Series. A series that is not on the page now has a value that is
	// Absent.
	Values []float64
	// Families are the rest of the page: the process's own families and the
	// histograms, sorted by name. They must not be changed.
	Families []*dto.MetricFamily

	layout *layout
}

// Read replaces the content of p by the latest page. It reports whether Series
// differs from the previous Read. The error names what could not be gathered;
// the rest of the page is valid.
func (e *Exporter) Read(p *Page) (changed bool, err error) {
	f := newFrame()
	defer f.release()
	e.snapshot(f)
	changed, p.layout = p.layout != f.layout, f.layout
	p.Values = append(p.Values[:0], f.values...)
	p.Families, err = e.beside(f)
	return changed, err
}

// Series yields the name and the labels, sorted by name, of each value of
// p.Values. The labels must not be changed.
func (p *Page) Series() iter.Seq2[string, []Label] {
	return func(yield func(string, []Label) bool) {
		if p.layout == nil {
			return
		}
		l := p.layout
		for _, fam := range l.families {
			for at := fam.begin; at < fam.end; at++ {
				if !yield(fam.metric.Name, l.blocks.labels[l.block[at]]) {
					return
				}
			}
		}
	}
}

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
	labels := make([][]*dto.LabelPair, len(l.blocks.labels))
	for i, block := range l.blocks.labels {
		for _, lab := range block {
			labels[i] = append(labels[i], &dto.LabelPair{Name: new(lab.Name), Value: new(lab.Value)})
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
			if Absent(f.values[at]) {
				continue
			}
			m := &dto.Metric{Label: labels[l.block[at]]}
			if counter {
				m.Counter = &dto.Counter{Value: new(f.values[at])}
			} else {
				m.Gauge = &dto.Gauge{Value: new(f.values[at])}
			}
			out.Metric = append(out.Metric, m)
		}
		if len(out.Metric) > 0 {
			families = append(families, out)
		}
	}
	return families
}
