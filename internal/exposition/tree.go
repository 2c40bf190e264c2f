package exposition

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// tree is a page as client_model has it. Its values are its own, so that
// whoever holds it shares nothing with the next scrape.
type tree struct {
	layout   *layout
	values   []float64
	families []*dto.MetricFamily
	page     []*dto.MetricFamily // families merged with the process's own
}

func newTree(l *layout) *tree {
	t := &tree{layout: l, values: make([]float64, l.series)}
	pairs := make([][]*dto.LabelPair, l.blocks.len())
	shared := make(map[label]*dto.LabelPair)
	for i := range pairs {
		for _, lab := range parseBlock(l.blocks.at(int32(i))) {
			if shared[lab] == nil {
				shared[lab] = &dto.LabelPair{Name: new(lab.name), Value: new(lab.value)}
			}
			pairs[i] = append(pairs[i], shared[lab])
		}
	}
	metrics := make([]dto.Metric, l.series)
	pointers := make([]*dto.Metric, l.series)
	for _, fam := range l.families {
		counter := fam.metric.Kind.Type() == "counter"
		out := &dto.MetricFamily{
			Name:   new(fam.metric.Name),
			Help:   new(help(fam.metric)),
			Type:   dto.MetricType_GAUGE.Enum(),
			Metric: pointers[fam.begin:fam.end:fam.end],
		}
		if counter {
			out.Type = dto.MetricType_COUNTER.Enum()
		}
		for i := fam.begin; i < fam.end; i++ {
			m := &metrics[i]
			m.Label = pairs[l.block[i]]
			if counter {
				m.Counter = &dto.Counter{Value: &t.values[i]}
			} else {
				m.Gauge = &dto.Gauge{Value: &t.values[i]}
			}
			pointers[i] = m
		}
		t.families = append(t.families, out)
	}
	return t
}

// merge puts the process's own families between the tree's, by name.
func (t *tree) merge(own []*dto.MetricFamily) []*dto.MetricFamily {
	t.page = appendMerged(t.page[:0], t.families, own)
	return t.page
}

// gather returns a tree that holds the latest page. The caller owns it.
func (e *Exporter) gather() (*tree, error) {
	f := e.frame()
	e.snapshot(f)
	l := f.layout
	t := l.spare.Swap(nil)
	if t == nil {
		t = newTree(l)
	}
	copy(t.values, f.values)
	own, err := e.beside(f)
	e.release(f)
	t.merge(own)
	return t, err
}

// keepTree is how long a tree is kept for the next scrape of the conventional
// face. It is several times as large as all that the fast face needs.
const keepTree = 5 * time.Minute

// dropTree lets go of a tree that nobody has asked for lately.
func (l *layout) dropTree() {
	if t := l.spare.Load(); t != nil && time.Since(time.Unix(l.used.Load(), 0)) > keepTree {
		l.spare.CompareAndSwap(t, nil)
	}
}

// Gatherer returns the conventional face: every family of the page, for tests
// and for linters. What it returns belongs to the caller.
func (e *Exporter) Gatherer() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		t, err := e.gather()
		return t.page, err
	})
}

// Transactional returns the conventional face for promhttp. What it returns
// is valid until done is called and is then used again.
func (e *Exporter) Transactional() prometheus.TransactionalGatherer { return transactional{e} }

type transactional struct{ e *Exporter }

func (g transactional) Gather() ([]*dto.MetricFamily, func(), error) {
	t, err := g.e.gather()
	return t.page, func() {
		clear(t.page[:cap(t.page)])
		t.layout.used.Store(time.Now().Unix())
		t.layout.spare.Store(t)
		g.e.tidy(t.layout)
	}, err
}
