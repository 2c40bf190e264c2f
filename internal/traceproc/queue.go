package traceproc

import (
	"encoding/json"
	"sync"
)

// Bounds of what waits to be sent, and of one batch.
const (
	maxQueued  = 4096    // spans
	maxBytes   = 4 << 20 // of them, as JSON
	maxBatch   = 256     // spans
	maxMessage = 1 << 20 // bytes of a batch
)

// queue holds the spans that wait, and counts what became of those that do not
// wait any more.
type queue struct {
	changed chan struct{} // capacity 1: there is something to send

	mu     sync.Mutex
	spans  []json.RawMessage
	bytes  int
	counts map[string]uint64 // by result
}

// The results of a span: the values of the label result.
const (
	resultSent      = "sent"
	resultRejected  = "rejected"
	resultUnsampled = "unsampled"
	resultOverflow  = "overflow" // the queue was full
	resultShutdown  = "shutdown" // it still waited when the exporter ended
)

var results = []string{resultSent, resultRejected, resultUnsampled, resultOverflow, resultShutdown}

func newQueue() *queue {
	return &queue{changed: make(chan struct{}, 1), counts: map[string]uint64{}}
}

// add queues a span, or counts that there is no room for it.
func (q *queue) add(s *Span) {
	data, err := json.Marshal(s)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil || len(q.spans) >= maxQueued || q.bytes+len(data) > maxBytes || len(data) > maxMessage {
		q.counts[resultOverflow]++
		return
	}
	q.spans = append(q.spans, data)
	q.bytes += len(data)
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// batch returns the spans that have waited longest. They stay in the queue.
func (q *queue) batch() []json.RawMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < min(len(q.spans), maxBatch) && size+len(q.spans[n]) <= maxMessage {
		size += len(q.spans[n])
		n++
	}
	return append([]json.RawMessage(nil), q.spans[:n]...)
}

// done takes the n spans that have waited longest out of the queue, of which
// became what o says.
func (q *queue) done(n int, o *Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.spans[:n] {
		q.bytes -= len(s)
	}
	// Not in place: what is cut off would be held.
	q.spans = append([]json.RawMessage(nil), q.spans[n:]...)
	q.counts[resultSent] += uint64(o.Sent)
	q.counts[resultRejected] += uint64(o.Rejected)
	q.counts[resultUnsampled] += uint64(o.Unsampled)
}

// giveUp counts what waits as lost and returns how much that is.
func (q *queue) giveUp() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.spans)
	q.counts[resultShutdown] += uint64(n)
	q.spans, q.bytes = nil, 0
	return n
}

// length returns how many spans wait, and how many bytes they take.
func (q *queue) length() (spans, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.spans), q.bytes
}

func (q *queue) count(result string) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts[result]
}
