package alertmanager

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// drop is why an alert was dropped: a closed set, because it is a label.
type drop string

const (
	dropRefused  drop = "refused" // invalid for the endpoint
	dropExpired  drop = "expired" // its end passed in the queue
	dropShutdown drop = "shutdown"
)

var drops = []drop{dropRefused, dropExpired, dropShutdown}

// stats are the metrics of a sender.
type stats struct {
	sent    uint64
	dropped map[drop]uint64
	failed  map[reason]uint64
	success time.Time // of the last one; zero before the first
}

const subsystem = "accel_alertmanager_"

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(subsystem+name, help, append(labels, "endpoint"), nil)
}

var (
	descSent = newDesc("alerts_sent_total",
		"Alerts delivered to an Alertmanager; repeated notifications count again.")
	descDropped = newDesc("alerts_dropped_total",
		"Alerts that were not delivered, by reason: refused (as invalid or too large), expired (in the queue), shutdown.", "reason")
	descFailures = newDesc("request_failures_total",
		"Failed requests, by reason: timeout, network, credentials (unreadable), redirect (3xx), unauthorized (401, 403, 407), throttled (429), client_error (other 4xx), server_error (5xx).", "reason")
	descQueue = newDesc("queue_length",
		"Alerts in the queue.")
	descSuccess = newDesc("last_success_timestamp_seconds",
		"Time of the last delivery, seconds since the epoch; absent before the first.")
)

// Describe implements prometheus.Collector.
func (n *Notifier) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSent, descDropped, descFailures, descQueue, descSuccess} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (n *Notifier) Collect(ch chan<- prometheus.Metric) {
	for _, s := range n.plan.Load().senders {
		s.collect(ch)
	}
}

func (s *sender) collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append(labels, s.label)...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.label)
	}
	counter(descSent, s.stats.sent)
	for _, why := range drops {
		counter(descDropped, s.stats.dropped[why], string(why))
	}
	for _, why := range reasons {
		counter(descFailures, s.stats.failed[why], string(why))
	}
	gauge(descQueue, float64(len(s.queue)))
	if !s.stats.success.IsZero() {
		gauge(descSuccess, float64(s.stats.success.UnixMilli())/1000)
	}
}
