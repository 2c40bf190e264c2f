package ruleproc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxSeries bounds what an engine may tell of itself.
const maxSeries = 10_000

// families are what the names of an engine's own begin with.
var families = []string{"accel_rules_", "accel_alertmanager_"}

// told is what engines have told of themselves: of the one that works all, of
// those before it what they counted, which goes on.
type told struct {
	mu      sync.Mutex
	past    map[string]*dto.Metric // by series
	now     []*dto.MetricFamily
	metrics []prometheus.Metric
}

// take takes the families of the engine that works.
func (t *told) take(data []byte) error {
	var list []*dto.MetricFamily
	n := 0
	for r := bytes.NewReader(data); ; {
		f := &dto.MetricFamily{}
		if err := protodelim.UnmarshalFrom(r, f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("%w: families: %w", collector.ErrProtocol, err)
		}
		if !slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(f.GetName(), prefix) }) {
			return fmt.Errorf("%w: family %.80q", collector.ErrProtocol, f.GetName())
		}
		if n += len(f.Metric); n > maxSeries {
			return fmt.Errorf("%w: more than %d series", collector.ErrProtocol, maxSeries)
		}
		list = append(list, f)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = list
	t.render()
	return nil
}

// gone keeps what the engine counted. Its gauges go.
func (t *told) gone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.now[:0]
	past := map[string]*dto.Metric{}
	for _, f := range t.now {
		if f.GetType() == dto.MetricType_GAUGE {
			continue
		}
		for _, m := range f.Metric {
			past[key(f, m)] = m
		}
		kept = append(kept, f)
	}
	t.now, t.past = kept, past
	t.metrics = metricsOf(t.now)
}

// render adds what was counted before to what is counted now.
func (t *told) render() {
	for _, f := range t.now {
		for _, m := range f.Metric {
			if before := t.past[key(f, m)]; before != nil {
				add(m, before)
			}
		}
	}
	t.metrics = metricsOf(t.now)
}

func metricsOf(list []*dto.MetricFamily) []prometheus.Metric {
	var all []prometheus.Metric
	for _, f := range list {
		desc := prometheus.NewDesc(f.GetName(), f.GetHelp(), nil, nil)
		for _, m := range f.Metric {
			all = append(all, metric{desc, m})
		}
	}
	return all
}

// key identifies a series.
func key(f *dto.MetricFamily, m *dto.Metric) string {
	b := []byte(f.GetName())
	for _, l := range m.Label {
		b = strconv.AppendQuote(append(b, l.GetName()...), l.GetValue())
	}
	return string(b)
}

// add adds what a series had counted before.
func add(m, before *dto.Metric) {
	if c, old := m.Counter, before.Counter; c != nil && old != nil {
		v := c.GetValue() + old.GetValue()
		c.Value = &v
	}
	h, old := m.Histogram, before.Histogram
	if h == nil || old == nil || len(h.Bucket) != len(old.Bucket) {
		return
	}
	count, sum := h.GetSampleCount()+old.GetSampleCount(), h.GetSampleSum()+old.GetSampleSum()
	h.SampleCount, h.SampleSum = &count, &sum
	for i, b := range h.Bucket {
		n := b.GetCumulativeCount() + old.Bucket[i].GetCumulativeCount()
		b.CumulativeCount = &n
	}
}

// metric is a series as it was told.
type metric struct {
	desc *prometheus.Desc
	of   *dto.Metric
}

// Desc implements prometheus.Metric.
func (m metric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric.
func (m metric) Write(out *dto.Metric) error {
	out.Label, out.Counter, out.Gauge, out.Histogram, out.Untyped = m.of.Label, m.of.Counter, m.of.Gauge, m.of.Histogram, m.of.Untyped
	return nil
}

var (
	descUp = prometheus.NewDesc("accel_rules_engine_up",
		"1 while the rule engine works, a process of its own; 0 while it does not: no rule is evaluated and no alert is told.", nil, nil)
	descRestarts = prometheus.NewDesc("accel_rules_engine_restarts_total",
		"Times that the rule engine had to be started again: it ended, hung or could not be started. Each is logged with its reason.", nil, nil)
)

// Describe implements prometheus.Collector. It describes nothing: which
// families there are, the engine says.
func (p *Process) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It asks the engine nothing.
func (p *Process) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	up, restarts := 0.0, p.restarts
	if p.current != nil {
		up = 1
	}
	p.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(descUp, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(restarts))
	p.told.mu.Lock()
	defer p.told.mu.Unlock()
	for _, m := range p.told.metrics {
		ch <- m
	}
}
