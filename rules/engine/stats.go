package engine

import (
	"github.com/prometheus/client_golang/prometheus"
)

// stats are the engine's own metrics. Collecting them does not wait for an
// evaluation, because an evaluation reads a page that has them.
type stats struct {
	failures, hits *prometheus.CounterVec
	skipped, last  *prometheus.GaugeVec // last is absent before the first evaluation
}

func newStats() *stats {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "accel_rules_" + name, Help: help}, []string{label})
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "accel_rules_" + name, Help: help}, labels)
	}
	s := &stats{
		last:     gauge("last_evaluation_timestamp_seconds", "Time of the last evaluation, seconds since the epoch. Absent before the first evaluation."),
		failures: counter("evaluation_failures_total", "Evaluations of single rules that failed since the rules were loaded, by group. Alerts of a failing rule keep their state.", "group"),
		skipped:  gauge("skipped", "Rules that the node does not evaluate, by reason: cluster (needs the series of other nodes), range (looks back further than the memory of the engine).", "reason"),
		hits:     counter("limit_hits_total", "Hits of memory limits: series (left out at an evaluation), bytes (series that lost their older samples).", "limit"),
	}
	for _, limit := range []string{"series", "bytes"} {
		s.hits.WithLabelValues(limit)
	}
	return s
}

// rules begins the metrics of newly loaded rules.
func (s *stats) rules(groups []*group) {
	s.failures.Reset()
	for _, reason := range []Skip{SkipCluster, SkipRange} {
		s.skipped.WithLabelValues(string(reason)).Set(0)
	}
	for _, g := range groups {
		for _, r := range g.rules {
			if r.skip != "" {
				s.skipped.WithLabelValues(string(r.skip)).Inc()
			} else {
				s.failures.WithLabelValues(g.Name)
			}
		}
	}
}

// Metrics returns the engine's own metrics.
func (e *Engine) Metrics() []prometheus.Collector {
	return []prometheus.Collector{e.stats.failures, e.stats.hits, e.stats.skipped, e.stats.last}
}
