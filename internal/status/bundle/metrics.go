package bundle

import "github.com/prometheus/client_golang/prometheus"

// counts are the Recorder's own metrics.
type counts struct {
	writes, puts *prometheus.CounterVec
	waiting      prometheus.GaugeFunc
}

func newCounts(s *store) *counts {
	c := &counts{}
	c.writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "accel_bundles_written_total",
		Help: "Bundles of evidence of failed devices by outcome: ok, failed (disk full, read-only, no permission). While no file can be made in the directory, failed grows each minute.",
	}, []string{"outcome"})
	c.puts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "accel_bundles_sent_total",
		Help: "Attempts to send a bundle of evidence to --bundle.url by outcome: ok, failed. A bundle that was not sent stays in the directory and is tried again.",
	}, []string{"outcome"})
	c.waiting = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "accel_bundles_unsent",
		Help: "Bundles of evidence in the directory that were not sent yet.",
	}, func() float64 {
		n := 0.0
		for _, f := range s.list() {
			if !f.Sent {
				n++
			}
		}
		return n
	})
	for _, outcome := range []string{"ok", "failed"} {
		c.writes.WithLabelValues(outcome)
		c.puts.WithLabelValues(outcome)
	}
	return c
}

// count counts an outcome.
func count(of *prometheus.CounterVec, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	of.WithLabelValues(outcome).Inc()
}

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(ch chan<- prometheus.Metric) {
	r.counts.writes.Collect(ch)
	if r.o.Target != nil {
		r.counts.puts.Collect(ch)
		r.counts.waiting.Collect(ch)
	}
}
