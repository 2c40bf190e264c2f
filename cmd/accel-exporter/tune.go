package main

import (
	"bytes"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// tuneExporter and tuneWorker keep the two processes small. Both defer to
// what the operator set in the environment.
func tuneExporter() {
	if os.Getenv("GOMAXPROCS") == "" {
		// A scrape and a sample at the same time is all there is to do.
		runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	}
	tuneGC()
}

func tuneWorker() {
	if os.Getenv("GOMAXPROCS") == "" {
		// Calls that block leave theirs to others, and each costs memory.
		runtime.GOMAXPROCS(1)
	}
	tuneGC()
	// What only the start needed goes back to the system.
	time.AfterFunc(settled, debug.FreeOSMemory)
}

// settled is how long after the start of a process its memory is what it will
// be: everything has been read once.
const settled = 3 * time.Second

// tuneGC has garbage collected early: both processes allocate little, so that
// it costs them next to nothing.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
}

// lineLogger logs what a worker or its library writes to stderr, a line at a
// time and not more than a handful a minute.
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
