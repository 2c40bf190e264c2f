package exporter

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// tree is a page as client_model has it. Its values are its own, so that
// whoever holds it shares nothing with the next scrape.
type tree struct {
	frame    frame
	families []*dto.MetricFamily
	page     []*dto.MetricFamily // families merged with the process's own
}

// newTree builds the families of l around values that f will hold.
func newTree(l *layout, f frame) *tree {
	t := &tree{frame: f}
	pairs := make([][]*dto.LabelPair, l.blocks.len())
	shared := make(map[label]*dto.LabelPair)
	for i := range pairs {
		pairs[i] = parseBlock(l.blocks.at(int32(i)), shared)
	}
	metrics := make([]dto.Metric, l.series)
	pointers := make([]*dto.Metric, l.series)
	for _, fam := range l.families {
		counter := fam.metric.Kind.Type() == "counter"
		out := &dto.MetricFamily{
			Name:   proto.String(fam.metric.Name),
			Help:   proto.String(strings.ToValidUTF8(fam.metric.Help, "\uFFFD")),
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
				m.Counter = &dto.Counter{Value: &t.frame.values[i]}
			} else {
				m.Gauge = &dto.Gauge{Value: &t.frame.values[i]}
			}
			pointers[i] = m
		}
		t.families = append(t.families, out)
	}
	return t
}

// parseBlock reads back what appendBlock wrote. Pairs that occur in several
// blocks are made once.
func parseBlock(block []byte, shared map[label]*dto.LabelPair) []*dto.LabelPair {
	var pairs []*dto.LabelPair
	for s := string(block); len(s) > 1 && s[0] != '}'; {
		name, rest, _ := strings.Cut(s[1:], `="`)
		end := 0
		for rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		l := label{name, unescape.Replace(rest[:end])}
		s = rest[end+1:]
		if shared[l] == nil {
			l = label{strings.Clone(l.name), strings.Clone(l.value)}
			shared[l] = &dto.LabelPair{Name: &l.name, Value: &l.value}
		}
		pairs = append(pairs, shared[l])
	}
	return pairs
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)

// merge puts the process's own families between the tree's, by name.
func (t *tree) merge(own []*dto.MetricFamily) []*dto.MetricFamily {
	t.page = t.page[:0]
	for _, f := range t.families {
		for len(own) > 0 && own[0].GetName() < f.GetName() {
			t.page = append(t.page, own[0])
			own = own[1:]
		}
		t.page = append(t.page, f)
	}
	t.page = append(t.page, own...)
	return t.page
}

// gather returns a tree that holds the latest page. The caller owns it.
func (e *Exporter) gather() (*tree, error) {
	f := e.frame()
	e.snapshot(f)
	l := f.layout
	t := l.spare.Swap(nil)
	if t == nil {
		t = newTree(l, frame{layout: l, values: make([]float64, l.series)})
	}
	copy(t.frame.values, f.values)
	e.release(f)
	own, err := e.self.gather(l)
	t.merge(own)
	return t, err
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
		t.frame.layout.spare.Store(t)
		g.e.tidy(t.frame.layout)
	}, err
}
