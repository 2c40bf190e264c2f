package trace

import (
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of a span: the values of the label result.
const (
	resultSent      = "sent"
	resultRejected  = "rejected"
	resultUnsampled = "unsampled"
	resultOverflow  = "overflow" // the queue was full
	resultShutdown  = "shutdown" // not sent when the exporter ended
)

// counts counts spans and requests, and logs the start and the end of failures. It is
// safe for concurrent use.
type counts struct {
	log      *slog.Logger
	spans    *prometheus.CounterVec // by result
	requests *prometheus.CounterVec // by outcome
	queue    prometheus.GaugeFunc
	waiting  atomic.Int64 // spans in the queue
	lost     atomic.Int64 // spans that were not sent when the exporter ended
	failing  atomic.Bool  // the latest request failed
	refusing atomic.Bool  // spans were rejected since a batch was sent
}

func newCounts(log *slog.Logger) *counts {
	c := &counts{log: log}
	c.spans = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "accel_traces_spans_total",
		Help: "Spans by result: sent (the receiver took it), rejected (the receiver refused its request, or a part of it), unsampled (the sampler of its trace dropped it), overflow (the queue was full), shutdown (not sent when the exporter ended).",
	}, []string{"result"})
	for _, r := range []string{resultSent, resultRejected, resultUnsampled, resultOverflow, resultShutdown} {
		c.spans.WithLabelValues(r)
	}
	c.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "accel_traces_batches_total",
		Help: "Requests to the receiver of traces by outcome: ok, failed. Temporary failures are retried, and each attempt counts.",
	}, []string{"outcome"})
	c.requests.WithLabelValues("ok")
	c.requests.WithLabelValues("failed")
	c.queue = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "accel_traces_queue_spans",
		Help: "Spans that wait to be sent, with those of the request in progress. Spans beyond 4,096 are lost.",
	}, func() float64 { return float64(c.waiting.Load()) })
	return c
}

// Describe implements prometheus.Collector.
func (c *counts) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *counts) Collect(ch chan<- prometheus.Metric) {
	c.spans.Collect(ch)
	c.requests.Collect(ch)
	c.queue.Collect(ch)
}

// admit counts a queued span. If the queue is full it counts an overflow and returns
// false.
func (c *counts) admit() bool {
	if c.waiting.Add(1) > maxQueued {
		c.waiting.Add(-1)
		c.spans.WithLabelValues(resultOverflow).Inc()
		return false
	}
	return true
}

// request counts a request.
func (c *counts) request(err error) {
	switch was := c.failing.Swap(err != nil); {
	case err == nil && was:
		c.log.Info("Traces are sent again")
	case err != nil && !was:
		c.log.Warn("A request with traces failed; temporary failures are retried", "err", clip(err.Error()))
	}
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	c.requests.WithLabelValues(outcome).Inc()
}

// done counts n spans that leave the queue.
func (c *counts) done(n int, result string, err error) {
	c.waiting.Add(int64(-n))
	c.spans.WithLabelValues(result).Add(float64(n))
	if result == resultShutdown {
		c.lost.Add(int64(n))
	}
	if refused := result == resultRejected; !c.refusing.Swap(refused) && refused {
		c.log.Error("The receiver rejects spans; they are lost", "spans", n, "err", clip(err.Error()))
	}
}

// maxText bounds the text of an error in the log, in bytes.
const maxText = 500

func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
}
