package main

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	floodLines    = 20 // of one subject before its lines are left out
	floodQuiet    = time.Minute
	floodSubjects = 256
)

// flood bounds the log lines about one subject. It logs when lines begin to be
// left out, and after floodQuiet without one how many there were.
type flood struct {
	log *slog.Logger

	mu       sync.Mutex
	subjects map[string]*subject
}

type subject struct {
	lines int
	ends  *time.Timer
}

// allow reports whether one more line about the subject is logged.
func (f *flood) allow(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subjects[name] == nil && len(f.subjects) >= floodSubjects {
		name = "others"
	}
	s := f.subjects[name]
	if s == nil {
		if f.subjects == nil {
			f.subjects = map[string]*subject{}
		}
		s = &subject{ends: time.AfterFunc(floodQuiet, func() { f.end(name) })}
		f.subjects[name] = s
	}
	s.ends.Reset(floodQuiet)
	if s.lines++; s.lines == floodLines+1 {
		f.log.Warn("Further lines are left out until there is none for a while", "about", name, "while", floodQuiet)
	}
	return s.lines <= floodLines
}

func (f *flood) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.subjects[name]
	if s == nil {
		return // the timer fired while it was reset
	}
	if over := s.lines - floodLines; over > 0 {
		f.log.Warn("Lines were left out", "about", name, "lines", over)
	}
	delete(f.subjects, name)
}

// serverLog logs what net/http reports of its connections.
type serverLog struct {
	log   *slog.Logger
	lines flood
}

// Write implements io.Writer for a log.Logger, which writes whole messages.
func (l *serverLog) Write(p []byte) (int, error) {
	message := strings.TrimSpace(string(p))
	// "http: TLS handshake error from ADDRESS: REASON", "http: Accept error: REASON"
	kind, _, _ := strings.Cut(strings.TrimPrefix(message, "http: "), ":")
	kind, _, _ = strings.Cut(kind, " from ")
	kind, _, _ = strings.Cut(kind, " serving ")
	if l.lines.allow(kind) {
		l.log.Warn(message)
	}
	return len(p), nil
}
