package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are the engine's own metrics. Collecting them does not wait for an
// evaluation, because an evaluation reads a page that has them.
type stats struct {
	all    []prometheus.Collector
	groups map[string]bool // with evaluated rules

	passes, triggered, seconds, gatherFailed, duplicates, templatesFailed prometheus.Counter

	last, lastSeconds           *prometheus.GaugeVec // absent before the first evaluation
	evaluations, failures, hits *prometheus.CounterVec
	loaded, skipped, alerts     *prometheus.GaugeVec
	series, samples             prometheus.Gauge
}

func newStats(l Limits) *stats {
	s := &stats{}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "accel_rules_" + name, Help: help}, labels)
		s.all = append(s.all, c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "accel_rules_" + name, Help: help}, labels)
		s.all = append(s.all, g)
		return g
	}
	s.passes = counter("passes_total", "Evaluations of the due rules, at an interval or after an event.").WithLabelValues()
	s.triggered = counter("triggered_passes_total", "Evaluations that an event triggered.").WithLabelValues()
	s.seconds = counter("evaluation_seconds_total", "Time spent reading the page and evaluating rules, in seconds.").WithLabelValues()
	s.lastSeconds = gauge("last_evaluation_duration_seconds", "Duration of the last evaluation, including reading the page, in seconds.")
	s.last = gauge("last_evaluation_timestamp_seconds", "Time of the last evaluation, seconds since the epoch. Absent before the first evaluation.")
	s.gatherFailed = counter("gather_failures_total", "Evaluations with an incomplete page.").WithLabelValues()
	s.duplicates = counter("duplicate_samples_total", "Samples left out because the page has the same series twice.").WithLabelValues()
	s.templatesFailed = counter("template_failures_total", "Labels and annotations whose template failed; the alert is sent with a text that shows the error.").WithLabelValues()
	s.evaluations = counter("evaluations_total", "Evaluations of single rules, by group.", "group")
	s.failures = counter("evaluation_failures_total", "Evaluations of single rules that failed, by group. Alerts of a failing rule keep their state.", "group")
	s.loaded = gauge("loaded", "Loaded rules, including skipped ones.", "type")
	s.skipped = gauge("skipped", "Rules that the node does not evaluate, by reason: cluster (needs the series of other nodes), range (looks back further than the memory of the engine).", "reason")
	s.alerts = gauge("alerts", "Alerts by state.", "state")
	s.series = gauge("series", "Series in memory.").WithLabelValues()
	gauge("series_limit", "Largest number of series in memory.").WithLabelValues().Set(float64(l.Series))
	s.samples = gauge("samples_bytes", "Size of the samples in memory, without labels, in bytes.").WithLabelValues()
	gauge("samples_limit_bytes", "Largest size of the samples in memory, in bytes.").WithLabelValues().Set(float64(l.Bytes))
	s.hits = counter("limit_hits_total", "Hits of memory limits: series (left out at an evaluation), bytes (series that lost their older samples).", "limit")
	for _, limit := range []string{"series", "bytes"} {
		s.hits.WithLabelValues(limit)
	}
	return s
}

// rules updates the loaded rules. The counters of remaining groups continue.
func (s *stats) rules(groups []*group) {
	loaded, skipped := map[string]int{typeAlerting: 0, typeRecording: 0}, map[Skip]int{SkipCluster: 0, SkipRange: 0}
	before := s.groups
	s.groups = map[string]bool{}
	for _, g := range groups {
		for _, r := range g.rules {
			loaded[r.kind()]++
			if r.skip != "" {
				skipped[r.skip]++
				continue
			}
			s.groups[g.Name] = true
			s.evaluations.WithLabelValues(g.Name)
			s.failures.WithLabelValues(g.Name)
		}
	}
	for name := range before {
		if !s.groups[name] {
			s.evaluations.DeleteLabelValues(name)
			s.failures.DeleteLabelValues(name)
		}
	}
	for kind, n := range loaded {
		s.loaded.WithLabelValues(kind).Set(float64(n))
	}
	for reason, n := range skipped {
		s.skipped.WithLabelValues(string(reason)).Set(float64(n))
	}
}

// passed records the outcome of an evaluation.
func (s *stats) passed(e *Engine, now time.Time, took time.Duration, gatherFailed, triggered bool) {
	alerts := map[State]int{Pending: 0, Firing: 0}
	for _, g := range e.groups {
		for _, r := range g.rules {
			for _, a := range r.active {
				alerts[a.state]++
			}
		}
	}
	delete(alerts, Inactive)
	for state, n := range alerts {
		s.alerts.WithLabelValues(string(state)).Set(float64(n))
	}
	s.passes.Inc()
	if triggered {
		s.triggered.Inc()
	}
	if gatherFailed {
		s.gatherFailed.Inc()
	}
	s.last.WithLabelValues().Set(float64(now.UnixMilli()) / 1000)
	s.lastSeconds.WithLabelValues().Set(took.Seconds())
	s.seconds.Add(took.Seconds())
	s.series.Set(float64(e.ring.count()))
	s.samples.Set(float64(e.ring.bytes))
}

// Describe implements prometheus.Collector.
func (e *Engine) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range e.stats.all {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (e *Engine) Collect(ch chan<- prometheus.Metric) {
	for _, c := range e.stats.all {
		c.Collect(ch)
	}
}
