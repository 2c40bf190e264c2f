package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkIdle measures a second without a scrape: a round of every source, and the
// publication. It reports the CPU time of the exporter and its workers.
func BenchmarkIdle(b *testing.B) {
	scenarios := map[string]string{"16x7": "h100-mig-16x7"}
	for _, n := range []int{1, 8, 64} {
		name := strconv.Itoa(n)
		scenarios[name] = tempFile(b, name+".yaml", fmt.Sprintf("description: H100s\ngpus:\n  - {board: h100-sxm5-80gb, count: %d, load: \"noise:0.6:0.2:5\"}\n", n))
	}
	for _, name := range []string{"1", "8", "64", "16x7"} {
		b.Run("gpus="+name, func(b *testing.B) {
			state, flags := compile(b, scenarios[name])
			n, exporter := startProcess(b, state, nil, append(flags, "--collect.interval=1s", "--metrics.detail=standard")...)
			b.Cleanup(func() { _ = n.stop() })
			n.until(`^accel_temperature_celsius`)
			time.Sleep(12 * time.Second) // the slowest of the usual values are read every 10 s
			before := cpuTime(b, exporter.Pid)
			for b.Loop() {
				time.Sleep(time.Second)
			}
			b.ReportMetric(float64((cpuTime(b, exporter.Pid)-before).Microseconds())/1000/float64(b.N), "CPU-ms/s")
		})
	}
}

// cpuTime is the CPU time of a process and its children, of the threads that are alive.
func cpuTime(b *testing.B, pid int) (total time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, thread := range threads {
		stat, _ := os.ReadFile(thread + "/schedstat")
		ns, _, _ := strings.Cut(string(stat), " ")
		run, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			continue // the thread has ended
		}
		children, _ := os.ReadFile(thread + "/children")
		for child := range strings.FieldsSeq(string(children)) {
			c, _ := strconv.Atoi(child)
			total += cpuTime(b, c)
		}
		total += time.Duration(run)
	}
	return total
}
