package main

import (
	"bytes"
	"log/slog"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// eventLog logs events as they arrive, at most eventsPerMinute: a failing GPU
// can emit thousands.
type eventLog struct {
	log *slog.Logger

	mu     sync.Mutex
	window time.Time
	events int
}

const eventsPerMinute = 100

func (l *eventLog) note(e collector.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.window) > time.Minute {
		if over := l.events - eventsPerMinute; over > 0 {
			l.log.Warn("Events were counted but not logged", "events", over)
		}
		l.window, l.events = now, 0
	}
	if l.events++; l.events > eventsPerMinute {
		return
	}
	if e.Past {
		l.log.Info("Event from before the start", "collector", e.Source, "kind", e.Kind, "code", e.Code, "pci", e.PCI, "time", e.Time)
		return
	}
	l.log.Warn("Event", "collector", e.Source, "kind", e.Kind, "code", e.Code, "device", e.Device, "pci", e.PCI, "partition", e.Partition, "sub", e.Sub, "detail", e.Detail)
}

// lineLogger logs what a worker or its library writes to stderr, line by line
// and at most linesPerMinute.
type lineLogger struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte
	window  time.Time
	lines   int
}

const (
	linesPerMinute = 20
	maxLogLine     = 1 << 10
)

// Write implements io.Writer; it never fails.
func (l *lineLogger) Write(p []byte) (int, error) {
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
		l.line(string(bytes.TrimSpace(l.partial)))
		l.partial, p = l.partial[:0], rest
	}
}

func (l *lineLogger) line(s string) {
	if now := time.Now(); now.Sub(l.window) > time.Minute {
		l.window, l.lines = now, 0
	}
	if l.lines++; s == "" || l.lines > linesPerMinute {
		return
	}
	l.log.Warn("Worker wrote to stderr", "line", s)
}
