package remediation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the Controller's own.
type metrics struct {
	actions            *prometheus.CounterVec
	withheld, dry      *prometheus.GaugeVec
	nodes, out, open   *prometheus.GaugeVec
	unknown, listing   prometheus.Gauge
	acting, last, took prometheus.Gauge
	failed             prometheus.Counter
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "accel_remediator_" + name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "accel_remediator_" + name, Help: help}, labels)
	}
	m := &metrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "accel_remediator_actions_total",
			Help: "What was done. action: take_out, mark, let_in, condition, event, evict, call; result: done, refused (by a disruption budget), conflict (the node had changed; done again), error.",
		}, []string{"action", "result"}),
		withheld: gauges("withheld_nodes", "Nodes for which alerts ask for something that is not done now. reason: hold, suppressed, share, hour, breaker.", "reason"),
		dry:      gauges("planned_nodes", "Nodes to which something is to be done now; in a dry run it stays undone. action: take_out, mark, let_in, evict, call.", "action"),
		nodes:    gauges("pool_nodes", "Nodes of the pool.", "pool"),
		out:      gauges("pool_nodes_out", "Nodes of the pool that are taken out.", "pool"),
		open:     gauges("breaker_open", "1 where so much of the pool fails at once that nothing new is done.", "pool"),
		unknown:  gauge("unknown_nodes", "Nodes that alerts name and that the cluster does not have."),
		listing:  gauge("alerts_listed", "1 where an Alertmanager has answered the last pass; else nothing is begun and nothing undone."),
		acting:   gauge("acting", "1 where what is planned is done, 0 in a dry run."),
		last:     gauge("last_pass_timestamp_seconds", "When the last pass ended, as seconds since 1970."),
		took:     gauge("last_pass_duration_seconds", "How long the last pass took, in seconds."),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "accel_remediator_failed_passes_total", Help: "Passes that could not list the nodes.",
		}),
	}
	return m
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	m := c.m
	for _, part := range []prometheus.Collector{
		m.actions, m.withheld, m.dry, m.nodes, m.out, m.open, m.unknown, m.listing, m.acting, m.last, m.took, m.failed,
	} {
		part.Collect(ch)
	}
}

func (m *metrics) done(action, result string) { m.actions.WithLabelValues(action, result).Inc() }

func (m *metrics) listed(ok bool) { m.listing.Set(value(ok)) }

func (m *metrics) passed(began, ended time.Time) {
	m.last.Set(float64(ended.UnixMilli()) / 1000)
	m.took.Set(ended.Sub(began).Seconds())
}

func (m *metrics) planned(p *Plan, act bool) {
	m.acting.Set(value(act))
	m.unknown.Set(float64(len(p.Unknown)))
	for _, vec := range []*prometheus.GaugeVec{m.nodes, m.out, m.open} {
		vec.Reset()
	}
	for _, pool := range p.Pools {
		m.nodes.WithLabelValues(pool.Name).Set(float64(pool.Nodes))
		m.out.WithLabelValues(pool.Name).Set(float64(pool.Out))
		m.open.WithLabelValues(pool.Name).Set(value(pool.Open))
	}
	withheld, planned := map[string]int{}, map[string]int{"take_out": 0, "mark": 0, "let_in": 0, "evict": 0, "call": 0}
	for _, reason := range Withheld {
		withheld[reason] = 0
	}
	for i := range p.Nodes {
		s := &p.Nodes[i]
		if s.Withheld != "" {
			withheld[s.Withheld]++
		}
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
	for reason, n := range withheld {
		m.withheld.WithLabelValues(reason).Set(float64(n))
	}
	for action, n := range planned {
		m.dry.WithLabelValues(action).Set(float64(n))
	}
}

func value(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
