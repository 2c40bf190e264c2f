package remediation

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxNamed bounds the nodes and devices that have separate series. The sums of the pools
// count every node.
const maxNamed = 1000

// metrics are the metrics of a Controller.
type metrics struct {
	mu                      sync.Mutex // locked while a plan replaces another
	actions                 *prometheus.CounterVec
	withheld, dry           *prometheus.GaugeVec
	nodes, out, open        *prometheus.GaugeVec
	devices                 *prometheus.GaugeVec
	since, inspection       *prometheus.GaugeVec
	unknown, nameless       *prometheus.GaugeVec
	listing                 *prometheus.GaugeVec
	acting, lastTime, lasts *prometheus.GaugeVec
	failed                  *prometheus.CounterVec
}

func newMetrics(act bool) *metrics {
	m := &metrics{
		actions: counter(actionsTotal), withheld: gauge(withheldNodes), dry: gauge(plannedNodes),
		nodes: gauge(poolNodes), out: gauge(poolNodesOut), devices: gauge(poolDevicesOut), open: gauge(breakerOpen),
		since: gauge(nodeOut), inspection: gauge(nodeInspection),
		unknown: gauge(unknownNodes), nameless: gauge(alertsWithoutNode), listing: gauge(alertsListed),
		acting: gauge(acting), lastTime: gauge(lastPass), lasts: gauge(lastPassDuration), failed: counter(failedPasses),
	}
	m.acting.WithLabelValues().Set(value(act))
	m.failed.WithLabelValues()
	for action, results := range map[string][]string{
		"take_out": {"conflict"}, "mark": {"conflict"}, "let_in": {"conflict"}, "forget": {"conflict"}, "devices": nil, "test": nil, "condition": nil, "event": nil, "evict": {"refused"}, "call": nil,
	} {
		for _, result := range append(results, "done", "error") {
			m.actions.WithLabelValues(action, result) // so that the first action counts as an increase
		}
	}
	return m
}

func gauge(m *collector.Metric) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

func counter(m *collector.Metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// Process returns the metrics of the process: whether it has the lease, and
// whether it loaded its policy file.
func Process(leads, reloaded func() bool) []prometheus.Collector {
	state := func(m *collector.Metric, is func() bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, func() float64 { return value(is()) })
	}
	return []prometheus.Collector{state(leader, leads), state(policyReloaded, reloaded)}
}

// Describe implements prometheus.Collector. It describes nothing, because the
// series depend on the passes.
func (c *Controller) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, part := range []prometheus.Collector{
		m.actions, m.withheld, m.dry, m.nodes, m.out, m.devices, m.open, m.since, m.inspection,
		m.unknown, m.nameless, m.listing, m.acting, m.lastTime, m.lasts, m.failed,
	} {
		part.Collect(ch)
	}
}

func (m *metrics) done(action, result string) { m.actions.WithLabelValues(action, result).Inc() }

func (m *metrics) listed(answers []Answer) {
	for _, a := range answers {
		m.listing.WithLabelValues(a.Alertmanager).Set(value(a.Err == nil))
	}
}

func (m *metrics) passed(began, ended time.Time) {
	m.lastTime.WithLabelValues().Set(seconds(ended))
	m.lasts.WithLabelValues().Set(ended.Sub(began).Seconds())
}

func (m *metrics) planned(p *Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unknown.WithLabelValues().Set(float64(len(p.Unknown)))
	m.nameless.WithLabelValues().Set(float64(len(p.WithoutNode)))
	m.pools(p)
	m.named(p)
	planned := map[string]int{"take_out": 0, "mark": 0, "let_in": 0, "forget": 0, "evict": 0, "call": 0}
	for _, s := range p.steps() {
		if !s.Patch.Empty() {
			planned[action(s)]++
		}
		if len(s.Evict) > 0 {
			planned["evict"]++
		}
		if len(s.Call) > 0 {
			planned["call"]++
		}
	}
	for action, n := range planned {
		m.dry.WithLabelValues(action).Set(float64(n))
	}
}

// pools sets the metrics of the pools.
func (m *metrics) pools(p *Plan) {
	for _, vec := range []*prometheus.GaugeVec{m.nodes, m.out, m.devices, m.open, m.withheld} {
		vec.Reset()
	}
	for _, pool := range p.Pools {
		m.nodes.WithLabelValues(pool.Name).Set(float64(pool.Nodes))
		m.out.WithLabelValues(pool.Name).Set(float64(pool.Out))
		m.devices.WithLabelValues(pool.Name).Set(float64(pool.Devices))
		m.open.WithLabelValues(pool.Name).Set(value(pool.Open))
		for _, reason := range Withheld {
			m.withheld.WithLabelValues(pool.Name, reason).Set(0)
		}
	}
	for _, s := range p.steps() {
		if s.Withheld != "" {
			m.withheld.WithLabelValues(s.Pool, s.Withheld).Inc()
		}
	}
}

// named sets the metrics of single nodes and devices by the annotations that they had when
// they were listed.
func (m *metrics) named(p *Plan) {
	m.since.Reset()
	m.inspection.Reset()
	named := 0
	for _, s := range p.steps() {
		r := s.Node.record()
		if r == nil || named == maxNamed {
			continue
		}
		named++
		m.since.WithLabelValues(s.Pool, s.Node.Name, s.Node.device()).Set(seconds(r.Since))
		if s.Node.inspected() {
			m.inspection.WithLabelValues(s.Pool, s.Node.Name, s.Node.device()).Set(1)
		}
	}
}

// seconds returns t as seconds since the epoch.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func value(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
