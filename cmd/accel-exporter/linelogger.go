package main

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

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
