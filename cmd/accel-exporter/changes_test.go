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
	c := newChanges(slog.New(slog.NewTextHandler(&out, nil)))
	refused := collector.Device{ID: "a"}
	refused.Set(collector.CallRefused, 1, "nvmlDeviceGetMemoryInfo_v2", "no_permission")
	refused.Set(collector.CallRefused, 1, "nvmlFoo", "unknown")
	other := refused
	other.ID = "b"
	for _, devices := range [][]collector.Device{{refused}, {refused}, {{ID: "a", Down: collector.ReasonStuck}, other}, {refused, other}, {{ID: "a"}, other}, {refused, other}} {
		c.logSnapshot(&collector.Snapshot{Devices: devices})
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
