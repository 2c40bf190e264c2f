package main

import (
	"regexp"
	"strings"
	"testing"
)

// podFamilies matches the allocation families. Other families do not depend on
// pods.
var podFamilies = regexp.MustCompile(`^(# (HELP|TYPE) )?accel_(allocation_|pod_|podmap_|resource_|device_holders|device_allocatable|unattributed_processes)`)

// timeDependent matches the allocation families that depend on elapsed time.
var timeDependent = regexp.MustCompile(`^accel_(allocation_seconds_total|podmap_age_seconds|podmap_unconfirmed_seconds|podmap_list_duration_seconds|podmap_calls_total\{.*outcome="ok"\})`)

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
		if !podFamilies.MatchString(line) {
			continue
		}
		if timeDependent.MatchString(line) {
			line = line[:strings.LastIndexByte(line, ' ')] + " VOLATILE\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
