package main

import (
	"strings"
	"testing"
)

// podFamilies begin the names of the allocation families. Other families do not depend
// on pods.
var podFamilies = []string{"accel_allocation_", "accel_pod_", "accel_podmap_", "accel_resource_", "accel_device_holders", "accel_device_allocatable", "accel_unattributed_processes"}

// TestGoldenPods compares the pod series of nodes with stopped clocks: with GPUs,
// with GPUs and FPGAs, with AMD GPUs whole and in partitions.
func TestGoldenPods(t *testing.T) {
	t.Parallel()
	for _, name := range []string{scenario, mixed, "mi300x-8", "mi300x-cpx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The grace period prevents idle time in a slow test.
			n := startPods(t, name, []string{"--frozen=600"}, configured(t, "allocation:", "  idle: {grace: 24h}",
				"  currency: EUR", "  prices: [{resource: nvidia.com/mig-*, per_hour: 0.5}, {resource: amd.com/cpx_*, per_hour: 0.4}, {class: gpu, per_hour: 2.5}]", "  generic_devices: [{paths: [/dev/dfl-port.*]}]"))
			n.until(`^accel_podmap_state\{state="fresh"\} 1$`)
			settleAs(n, name+".pods.metrics", podPage)
		})
	}
}

// podPage returns the allocation families of a page.
func podPage(page string) string {
	var b strings.Builder
	for line := range strings.Lines(normalise(page)) {
		rest, series := family(line)
		if !begins(rest, podFamilies) {
			continue
		}
		if series && strings.HasPrefix(line, "accel_allocation_seconds_total") { // depends on elapsed time
			line = line[:strings.LastIndexByte(line, ' ')] + " VOLATILE\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
