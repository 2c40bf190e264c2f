package main

import (
	"bytes"
	"cmp"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Limits of the log: the lines about one subject at once, after which one a minute
// follows, and the number of subjects.
const (
	maxLogLines    = 20
	maxLogSubjects = 256
)

// limitedLog limits the lines about one subject: a device can come and go every
// second, and a failing GPU can emit thousands of events.
type limitedLog struct {
	log *slog.Logger

	mu       sync.Mutex
	subjects map[string]*logSubject
}

type logSubject struct {
	lines *rate.Limiter
	muted bool
}

var discardedLog = slog.New(slog.DiscardHandler)

// about returns the log for one line about a subject.
func (l *limitedLog) about(name string) *slog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subjects[name] == nil && len(l.subjects) >= maxLogSubjects {
		name = "others"
	}
	s := l.subjects[name]
	if s == nil {
		if l.subjects == nil {
			l.subjects = map[string]*logSubject{}
		}
		s = &logSubject{lines: rate.NewLimiter(rate.Every(time.Minute), maxLogLines)}
		l.subjects[name] = s
	}
	allowed := s.lines.Allow()
	if !allowed && !s.muted {
		l.log.Warn("Further lines are limited to one a minute", "about", name)
	}
	if s.muted = !allowed; allowed {
		return l.log
	}
	return discardedLog
}

// event logs an event.
func (l *limitedLog) event(e collector.Event) {
	log := l.about("events of " + cmp.Or(e.PCI, e.Device, e.Source))
	if e.Past {
		log.Info("Event from before the start", "collector", e.Source, "kind", e.Kind, "code", e.Code, "device", e.Device, "pci", e.PCI, "time", e.Time)
		return
	}
	log.Warn("Event", "collector", e.Source, "kind", e.Kind, "code", e.Code, "device", e.Device, "pci", e.PCI, "partition", e.Partition, "sub", e.Sub, "detail", e.Detail)
}

// serverLog logs what net/http reports of its connections.
type serverLog struct{ *limitedLog }

// Write implements io.Writer for a log.Logger, which writes whole messages.
func (l serverLog) Write(p []byte) (int, error) {
	message := strings.TrimSpace(string(p))
	// "http: TLS handshake error from ADDRESS: REASON", "http: Accept error: REASON"
	kind, _, _ := strings.Cut(strings.TrimPrefix(message, "http: "), ":")
	kind, _, _ = strings.Cut(kind, " from ")
	kind, _, _ = strings.Cut(kind, " serving ")
	l.about(kind).Warn(message)
	return len(p), nil
}

// workerLog logs what a worker or its library writes to stderr, line by line.
type workerLog struct {
	*limitedLog
	worker string

	mu      sync.Mutex
	partial []byte
}

const maxLogLine = 1 << 10

// Write implements io.Writer; it never fails.
func (l *workerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		if room := maxLogLine - len(l.partial); len(line) > room {
			line = line[:room]
		}
		l.partial = append(l.partial, line...)
		if !found {
			return n, nil
		}
		if text := bytes.TrimSpace(l.partial); len(text) > 0 {
			l.about("worker "+l.worker).Warn("Worker wrote to stderr", "collector", l.worker, "line", string(text))
		}
		l.partial, p = l.partial[:0], rest
	}
}
