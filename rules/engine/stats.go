package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are the engine's own metrics. They have a lock of their own, because an
// evaluation reads a page that has them.
type stats struct {
	mu sync.Mutex

	groups                                       map[string]*groupStats
	loaded                                       map[string]int // by type
	skipped                                      map[Skip]int
	alerts                                       map[State]int
	passes, triggered, gatherFailed, tmplsFailed uint64
	duplicates                                   uint64
	seconds, lastSeconds                         float64
	last                                         time.Time
	series, bytes                                int
	hits                                         limitHits
}

type groupStats struct{ evaluations, failures uint64 }

// rules updates the loaded rules. The counters of remaining groups continue.
func (s *stats) rules(groups []*group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.groups
	s.groups = map[string]*groupStats{}
	s.loaded = map[string]int{typeAlerting: 0, typeRecording: 0}
	s.skipped = map[Skip]int{SkipCluster: 0, SkipRange: 0}
	for _, g := range groups {
		evaluated := false
		for _, r := range g.rules {
			s.loaded[r.kind()]++
			if r.skip != "" {
				s.skipped[r.skip]++
			} else {
				evaluated = true
			}
		}
		if !evaluated {
			continue
		}
		if s.groups[g.Name] = before[g.Name]; s.groups[g.Name] == nil {
			s.groups[g.Name] = &groupStats{}
		}
	}
}

func (s *stats) evaluated(group string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[group]
	if g == nil {
		return
	}
	if g.evaluations++; failed {
		g.failures++
	}
}

func (s *stats) templateFailed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tmplsFailed++
}

// passed records the outcome of an evaluation.
func (s *stats) passed(e *Engine, now time.Time, took time.Duration, gatherFailed, triggered bool) {
	alerts := map[State]int{Pending: 0, Firing: 0}
	for _, g := range e.groups {
		for _, r := range g.rules {
			for _, a := range r.active {
				if a.state != Inactive {
					alerts[a.state]++
				}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes++
	if triggered {
		s.triggered++
	}
	if gatherFailed {
		s.gatherFailed++
	}
	s.last, s.lastSeconds = now, took.Seconds()
	s.seconds += took.Seconds()
	s.alerts, s.series, s.bytes, s.hits, s.duplicates = alerts, e.ring.count, e.ring.bytes, e.ring.hits, e.feed.duplicates
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("accel_rules_"+name, help, labels, nil)
}

var (
	descPasses       = desc("passes_total", "Evaluations of the due rules, at an interval or after an event.")
	descTriggered    = desc("triggered_passes_total", "Evaluations that an event triggered.")
	descSeconds      = desc("evaluation_seconds_total", "Time spent reading the page and evaluating rules, in seconds.")
	descLastSeconds  = desc("last_evaluation_duration_seconds", "Duration of the last evaluation, including reading the page, in seconds.")
	descLast         = desc("last_evaluation_timestamp_seconds", "Time of the last evaluation, seconds since the epoch. Absent before the first evaluation.")
	descGather       = desc("gather_failures_total", "Evaluations with an incomplete page.")
	descDuplicates   = desc("duplicate_samples_total", "Samples left out because the page has the same series twice.")
	descTemplates    = desc("template_failures_total", "Labels and annotations whose template failed; the alert is sent with a text that shows the error.")
	descEvaluations  = desc("evaluations_total", "Evaluations of single rules, by group.", "group")
	descFailures     = desc("evaluation_failures_total", "Evaluations of single rules that failed, by group. Alerts of a failing rule keep their state.", "group")
	descLoaded       = desc("loaded", "Loaded rules, including skipped ones.", "type")
	descSkipped      = desc("skipped", "Rules that the node does not evaluate, by reason: cluster (needs the series of other nodes), range (looks back further than the memory of the engine).", "reason")
	descAlerts       = desc("alerts", "Alerts by state.", "state")
	descSeries       = desc("series", "Series in memory.")
	descSeriesLimit  = desc("series_limit", "Largest number of series in memory.")
	descSamples      = desc("samples_bytes", "Size of the samples in memory, without labels, in bytes.")
	descSamplesLimit = desc("samples_limit_bytes", "Largest size of the samples in memory, in bytes.")
	descHits         = desc("limit_hits_total", "Hits of memory limits: series (left out at an evaluation), bytes (series that lost their older samples), history (series that change too often to be kept for the range of a rule).", "limit")
	allDescs         = []*prometheus.Desc{
		descPasses, descTriggered, descSeconds, descLastSeconds, descLast, descGather, descDuplicates, descTemplates, descEvaluations, descFailures,
		descLoaded, descSkipped, descAlerts, descSeries, descSeriesLimit, descSamples, descSamplesLimit, descHits,
	}
)

// Describe implements prometheus.Collector.
func (e *Engine) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It does not wait for an evaluation.
func (e *Engine) Collect(ch chan<- prometheus.Metric) {
	s := &e.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		send(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) { send(d, prometheus.GaugeValue, v, labels...) }

	counter(descPasses, s.passes)
	counter(descTriggered, s.triggered)
	send(descSeconds, prometheus.CounterValue, s.seconds)
	if !s.last.IsZero() {
		gauge(descLast, float64(s.last.UnixMilli())/1000)
		gauge(descLastSeconds, s.lastSeconds)
	}
	counter(descGather, s.gatherFailed)
	counter(descDuplicates, s.duplicates)
	counter(descTemplates, s.tmplsFailed)
	for name, g := range s.groups {
		counter(descEvaluations, g.evaluations, name)
		counter(descFailures, g.failures, name)
	}
	for kind, n := range s.loaded {
		gauge(descLoaded, float64(n), kind)
	}
	for reason, n := range s.skipped {
		gauge(descSkipped, float64(n), string(reason))
	}
	for state, n := range s.alerts {
		gauge(descAlerts, float64(n), string(state))
	}
	gauge(descSeries, float64(s.series))
	gauge(descSeriesLimit, float64(e.o.Limits.Series))
	gauge(descSamples, float64(s.bytes))
	gauge(descSamplesLimit, float64(e.o.Limits.Bytes))
	counter(descHits, s.hits.series, "series")
	counter(descHits, s.hits.bytes, "bytes")
	counter(descHits, s.hits.history, "history")
}
