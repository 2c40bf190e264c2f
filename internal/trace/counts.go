package trace

import (
	"log/slog"
	"strings"
	"sync"
	"time"

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

var results = []string{resultSent, resultRejected, resultUnsampled, resultOverflow, resultShutdown}

// counts counts spans and requests, and logs the start and the end of failures. It is
// safe for concurrent use.
type counts struct {
	log *slog.Logger

	mu         sync.Mutex
	spans      map[string]uint64 // by result
	waiting    int
	ok, failed uint64    // requests
	success    time.Time // of the latest request that was ok
	failing    bool      // the latest request failed
	refusing   bool      // spans were rejected since a request was ok
}

func (c *counts) add(result string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans[result] += uint64(n)
}

func (c *counts) result(result string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[result]
}

// admit counts a queued span. If the queue is full it counts an overflow and returns
// false.
func (c *counts) admit(most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting >= most {
		c.spans[resultOverflow]++
		return false
	}
	c.waiting++
	return true
}

// request counts a request. err is nil if the receiver accepted all spans.
func (c *counts) request(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.ok++
		c.success = time.Now()
		if c.failing {
			c.log.Info("Traces are sent again")
		}
		c.failing, c.refusing = false, false
		return
	}
	c.failed++
	if !c.failing {
		c.log.Warn("A request with traces failed; temporary failures are retried", "err", clip(err.Error()))
	}
	c.failing = true
}

// done counts the results of n spans that leave the queue. Spans that were not sent
// have the result other.
func (c *counts) done(n, sent int, other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting -= n
	c.spans[resultSent] += uint64(sent)
	c.spans[other] += uint64(n - sent)
	if other == resultRejected && n > sent && !c.refusing {
		c.refusing = true
		c.log.Error("The receiver rejects spans; they are lost", "spans", n-sent)
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
