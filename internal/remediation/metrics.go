package remediation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxNamed bounds the nodes and devices that have separate series. The sums of the pools
// count every node.
const maxNamed = 1000

// newActions returns the counter of actions. Each series is there from the start, so that
// the first action counts as an increase.
func newActions() *prometheus.CounterVec {
	actions := prometheus.NewCounterVec(prometheus.CounterOpts{Name: actionsTotal.Name, Help: actionsTotal.Help}, actionsTotal.Labels)
	for action, results := range map[string][]string{
		"take_out": {"conflict"}, "mark": {"conflict"}, "let_in": {"conflict"}, "forget": {"conflict"}, "devices": nil, "test": nil, "condition": nil, "event": nil, "evict": {"refused"}, "call": nil,
	} {
		for _, result := range append(results, "done", "error") {
			actions.WithLabelValues(action, result)
		}
	}
	return actions
}

func (c *Controller) done(action, result string) { c.actions.WithLabelValues(action, result).Inc() }

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
	set := func(m *collector.Metric, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), prometheus.GaugeValue, value, labels...)
	}
	c.actions.Collect(ch)
	set(acting, value(c.o.Act))
	if p := c.plan.Load(); p != nil {
		p.collect(set)
	}
}

// collect sets the metrics of a plan. The metrics of single nodes and devices have the
// values of the annotations that the nodes had when they were listed.
func (p *Plan) collect(set func(m *collector.Metric, value float64, labels ...string)) {
	set(lastPass, seconds(p.Time))
	set(unknownNodes, float64(len(p.Unknown)))
	set(alertsWithoutNode, float64(len(p.WithoutNode)))
	for host, answers := range p.Alertmanagers {
		set(alertsListed, value(answers), host)
	}
	planned := map[string]int{"take_out": 0, "mark": 0, "let_in": 0, "forget": 0, "evict": 0, "call": 0}
	withheld, named := map[[2]string]int{}, 0
	for _, s := range p.steps() {
		withheld[[2]string{s.Pool, s.Withheld}]++
		if !s.Patch.Empty() {
			planned[action(s)]++
		}
		if len(s.Evict) > 0 {
			planned["evict"]++
		}
		if len(s.Call) > 0 {
			planned["call"]++
		}
		r := s.Node.record()
		if r == nil || named == maxNamed {
			continue
		}
		named++
		set(nodeOut, seconds(r.Since), s.Pool, s.Node.Name, s.Node.device())
		if s.Node.inspected() {
			set(nodeInspection, 1, s.Pool, s.Node.Name, s.Node.device())
		}
	}
	for action, n := range planned {
		set(plannedNodes, float64(n), action)
	}
	for _, pool := range p.Pools {
		set(poolNodes, float64(pool.Nodes), pool.Name)
		set(poolNodesOut, float64(pool.Out), pool.Name)
		set(poolDevicesOut, float64(pool.Devices), pool.Name)
		set(breakerOpen, value(pool.Open), pool.Name)
		for _, reason := range Withheld {
			set(withheldNodes, float64(withheld[[2]string{pool.Name, reason}]), pool.Name, reason)
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
