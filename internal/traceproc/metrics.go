package traceproc

import "github.com/prometheus/client_golang/prometheus"

var (
	descUp = prometheus.NewDesc("accel_traces_program_up",
		"1 while the program that sends traces works, a process of its own; 0 while it does not: spans wait.", nil, nil)
	descRestarts = prometheus.NewDesc("accel_traces_program_restarts_total",
		"Times that the program that sends traces had to be started again: it ended, hung or could not be started. Each is logged with its reason.", nil, nil)
	descSpans = prometheus.NewDesc("accel_traces_spans_total",
		"Spans by what became of them: sent (the receiver took it), rejected (the receiver refused it for good), unsampled (the sampler of its trace left it out), overflow (the queue was full), shutdown (it still waited when the exporter ended).", []string{"result"}, nil)
	descBatches = prometheus.NewDesc("accel_traces_batches_total",
		"Requests to the receiver of traces, by outcome: ok, failed. One that failed for a passing reason is sent again.", []string{"outcome"}, nil)
	descQueue = prometheus.NewDesc("accel_traces_queue_spans",
		"Spans that wait to be sent.", nil, nil)
	descQueueBytes = prometheus.NewDesc("accel_traces_queue_bytes",
		"Memory that the spans take that wait to be sent.", nil, nil)
	descCapacity = prometheus.NewDesc("accel_traces_queue_capacity_spans",
		"Most spans that may wait; fewer where they are long.", nil, nil)
	descSuccess = prometheus.NewDesc("accel_traces_last_success_timestamp_seconds",
		"When the receiver last took spans without a complaint, seconds since the epoch. Absent before the first time.", nil, nil)
)

// Describe implements prometheus.Collector.
func (p *Process) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descRestarts, descSpans, descBatches, descQueue, descQueueBytes, descCapacity, descSuccess} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It asks the program nothing.
func (p *Process) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	up, restarts, taken, failed, success := 0.0, p.restarts, p.taken, p.failed, p.success
	if p.current != nil {
		up = 1
	}
	p.mu.Unlock()
	spans, bytes := p.queue.length()
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, n uint64, label ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label...)
	}
	gauge(descUp, up)
	count(descRestarts, restarts)
	for _, r := range results {
		count(descSpans, p.queue.count(r), r)
	}
	count(descBatches, taken, "ok")
	count(descBatches, failed, "failed")
	gauge(descQueue, float64(spans))
	gauge(descQueueBytes, float64(bytes))
	gauge(descCapacity, maxQueued)
	if !success.IsZero() {
		gauge(descSuccess, float64(success.UnixMilli())/1000)
	}
}
