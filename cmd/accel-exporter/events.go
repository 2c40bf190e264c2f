package main

import (
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
