//go:build linux && cgo

package nvidia

import (
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// callTimes are the durations of the calls of all goroutines. A nil *callTimes
// measures nothing.
type callTimes struct {
	mu    sync.Mutex
	names map[string]int
	list  []collector.Distribution
}

func (t *callTimes) observe(name string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, known := t.names[name]
	if !known {
		i = len(t.list)
		t.names[name] = i
		t.list = append(t.list, *collector.NewDistribution(collector.NativeCallSeconds, "", Name, name))
	}
	t.list[i].Observe(d.Seconds())
}

// distributions returns a copy, which later calls do not change.
func (t *callTimes) distributions() []collector.Distribution {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]collector.Distribution, len(t.list))
	for i := range t.list {
		list[i] = t.list[i].Clone()
	}
	return list
}
