package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// A call that the driver refuses is logged once for each device, with what is
// missing and what permits it.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	c := changes{log: slog.New(slog.NewTextHandler(&out, nil)), sources: map[string]string{}, devices: map[string]string{}, refused: map[string]bool{}}
	refused := collector.Device{ID: "a"}
	refused.Set(collector.CallRefused, 1, "nvmlDeviceGetMemoryInfo_v2", "no_permission")
	refused.Set(collector.CallRefused, 1, "nvmlFoo", "unknown")
	other := refused
	other.ID = "b"
	for _, devices := range [][]collector.Device{{refused}, {refused}, {{ID: "a"}, other}, {refused, other}} {
		c.logSnapshot(&collector.Snapshot{Devices: devices})
	}
	lines := strings.Split(out.String(), "\n")
	for want, times := range map[string]int{
		"device=a call=nvmlDeviceGetMemoryInfo_v2 code=no_permission missing=\"Memory of the whole GPU.": 1,
		"device=b call=nvmlDeviceGetMemoryInfo_v2":                                                       1,
		"nvidia.migMonitor":                  2,
		"device=a call=nvmlFoo code=unknown": 1,
		"Driver refuses a call":              4,
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
