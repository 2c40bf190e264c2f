package trace

import (
	"log/slog"
	"strings"
	"sync"
	"time"
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

func newCounts(log *slog.Logger) *counts { return &counts{log: log, spans: map[string]uint64{}} }

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
