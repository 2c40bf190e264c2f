package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxLogQueue is the number of log lines that wait for a slow reader.
const maxLogQueue = 1024

// flushPatience bounds the wait for the reader of the log when the exporter ends.
const flushPatience = time.Second

// logQueue writes log lines on a goroutine of its own: a pipe that nobody reads
// must not stop a loop that logs. Lines that find the queue full are dropped and
// counted.
type logQueue struct {
	lines   chan []byte
	done    chan struct{}
	close   sync.Once
	dropped atomic.Uint64
}

// newLogQueue returns a queue in front of w. Its goroutine ends after flush.
func newLogQueue(w io.Writer) *logQueue {
	q := &logQueue{lines: make(chan []byte, maxLogQueue), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		var reported uint64
		for line := range q.lines {
			if line == nil {
				return
			}
			if n := q.dropped.Load(); n > reported && len(q.lines) < maxLogQueue/2 {
				fmt.Fprintf(w, "accel-exporter: %d log lines were dropped, because the log is not read\n", n-reported)
				reported = n
			}
			w.Write(line)
		}
	}()
	return q
}

// Write implements io.Writer for a slog.Handler, which writes whole lines. It
// never blocks and never fails.
func (q *logQueue) Write(p []byte) (int, error) {
	line := append([]byte(nil), p...)
	select {
	case q.lines <- line:
	default:
		q.dropped.Add(1)
	}
	return len(p), nil
}

// flush waits for the lines so far to be written, not longer than patience. Lines
// after it are lost.
func (q *logQueue) flush(patience time.Duration) {
	q.close.Do(func() {
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case q.lines <- nil:
			select {
			case <-q.done:
			case <-late.C:
			}
		case <-late.C:
		}
	})
}

// counter returns the number of dropped lines as a metric.
func (q *logQueue) counter() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "accel_exporter_log_lines_dropped_total",
		Help: "Log lines that were dropped because standard error was not read.",
	}, func() float64 { return float64(q.dropped.Load()) })
}
