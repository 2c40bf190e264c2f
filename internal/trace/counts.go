package trace

import (
	"log/slog"
	"strings"
	"sync"

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
	ok, failed uint64 // requests
	failing    bool   // the latest request failed
	refusing   bool   // spans were rejected since a batch was sent
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

// request counts a request.
func (c *counts) request(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.ok++
		if c.failing {
			c.log.Info("Traces are sent again")
		}
	default:
		c.failed++
		if !c.failing {
			c.log.Warn("A request with traces failed; temporary failures are retried", "err", clip(err.Error()))
		}
	}
	c.failing = err != nil
}

// done counts n spans that leave the queue.
func (c *counts) done(n int, result string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting -= n
	c.spans[result] += uint64(n)
	if result == resultRejected && !c.refusing {
		c.log.Error("The receiver rejects spans; they are lost", "spans", n, "err", clip(err.Error()))
	}
	c.refusing = result == resultRejected
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
		"Spans by result: sent (the receiver took it), rejected (the receiver refused its request, or a part of it), unsampled (the sampler of its trace dropped it), overflow (the queue was full), shutdown (not sent when the exporter ended).", []string{"result"}, nil)
	descBatches = prometheus.NewDesc("accel_traces_batches_total",
		"Requests to the receiver of traces by outcome: ok, failed. Temporary failures are retried, and each attempt counts.", []string{"outcome"}, nil)
	descQueue = prometheus.NewDesc("accel_traces_queue_spans",
		"Spans that wait to be sent, with those of the request in progress. Spans beyond 4,096 are lost.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Sender) Describe(ch chan<- *prometheus.Desc) {
	ch <- descSpans
	ch <- descBatches
	ch <- descQueue
}

// Collect implements prometheus.Collector.
func (s *Sender) Collect(ch chan<- prometheus.Metric) {
	c := s.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	count := func(d *prometheus.Desc, n uint64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
	}
	for _, r := range results {
		count(descSpans, c.spans[r], r)
	}
	count(descBatches, c.ok, "ok")
	count(descBatches, c.failed, "failed")
	ch <- prometheus.MustNewConstMetric(descQueue, prometheus.GaugeValue, float64(c.waiting))
}
