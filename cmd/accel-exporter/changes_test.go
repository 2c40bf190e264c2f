package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// TestLogLimits: the log has the first lines about a device that comes and goes, the
// news that further ones are limited, and what happens to others meanwhile.
func TestLogLimits(t *testing.T) {
	var out bytes.Buffer
	log := &limitedLog{log: slog.New(slog.NewTextHandler(&out, nil))}
	c := &changes{log: log}
	none, one := &collector.Snapshot{}, &collector.Snapshot{Devices: []collector.Device{{ID: "GPU-1", PCI: "0000:1b:00.0"}}}
	for range 500 {
		c.logSnapshot(none, one)
		c.logSnapshot(one, none)
	}
	c.logSnapshot(none, &collector.Snapshot{Devices: []collector.Device{{ID: "GPU-2", PCI: "0000:1c:00.0"}}})
	for text, times := range map[string]int{"pci=0000:1b:00.0": maxLogLines / 2, "device=GPU-2": 1, `about="device 0000:1b:00.0"`: 1} {
		if got := strings.Count(out.String(), text); got != times {
			t.Errorf("%s: %d lines, want %d\n%s", text, got, times, out.String())
		}
	}
}
