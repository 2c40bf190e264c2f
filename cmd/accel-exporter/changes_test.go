package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// A call that the driver begins to refuse is logged once for each device, with
// what is missing and what permits it. A device that fails ends no refusal.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	c := &changes{log: &limitedLog{log: slog.New(slog.NewTextHandler(&out, nil))}}
	refused := collector.Device{ID: "a"}
	refused.Set(collector.CallRefused, 1, "nvmlDeviceGetMemoryInfo_v2", "no_permission")
	refused.Set(collector.CallRefused, 1, "nvmlFoo", "unknown")
	other := refused
	other.ID = "b"
	for _, devices := range [][]collector.Device{{refused}, {refused}, {{ID: "a", Down: collector.ReasonStuck}, other}, {refused, other}, {{ID: "a"}, other}, {refused, other}} {
		c.logSnapshot(nil, &collector.Snapshot{Devices: devices})
	}
	lines := strings.Split(out.String(), "\n")
	for want, times := range map[string]int{
		"device=a call=nvmlDeviceGetMemoryInfo_v2 code=no_permission missing=\"Memory of the whole GPU.": 2,
		"device=b call=nvmlDeviceGetMemoryInfo_v2":                                                       1,
		"nvidia.migMonitor":                  3,
		"device=a call=nvmlFoo code=unknown": 2,
		"Driver refuses a call":              6,
	} {
		n := 0
		for _, l := range lines {
			if strings.Contains(l, want) {
				n++
			}
		}
		if n != times {
			t.Errorf("%q is logged %d times, want %d:\n%s", want, n, times, out.String())
		}
	}
}

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
