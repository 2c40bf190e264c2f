package trace

import "github.com/prometheus/client_golang/prometheus"

var (
	descSpans = prometheus.NewDesc("accel_traces_spans_total",
		"Spans by result: sent (the receiver took it), rejected (the receiver refused it for good), unsampled (the sampler of its trace dropped it), overflow (the queue was full), shutdown (not sent when the exporter ended).", []string{"result"}, nil)
	descBatches = prometheus.NewDesc("accel_traces_batches_total",
		"Requests to the receiver of traces by outcome: ok, failed. Temporary failures are retried, and each attempt counts.", []string{"outcome"}, nil)
	descQueue = prometheus.NewDesc("accel_traces_queue_spans",
		"Spans that wait to be sent, with those of the request in progress.", nil, nil)
	descCapacity = prometheus.NewDesc("accel_traces_queue_capacity_spans",
		"Upper bound of accel_traces_queue_spans. Spans beyond it are lost.", nil, nil)
	descSuccess = prometheus.NewDesc("accel_traces_last_success_timestamp_seconds",
		"Time when the receiver last took all spans of a request, in seconds since the epoch. Absent before the first time.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Sender) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSpans, descBatches, descQueue, descCapacity, descSuccess} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Sender) Collect(ch chan<- prometheus.Metric) {
	c := s.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, n uint64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
	}
	for _, r := range results {
		count(descSpans, c.spans[r], r)
	}
	count(descBatches, c.ok, "ok")
	count(descBatches, c.failed, "failed")
	gauge(descQueue, float64(c.waiting))
	gauge(descCapacity, maxQueued)
	if !c.success.IsZero() {
		gauge(descSuccess, float64(c.success.UnixMilli())/1000)
	}
}
