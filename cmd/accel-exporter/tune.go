package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// memoryLimit bounds the Go memory of the exporter and of each worker, in
// bytes. Both share a container whose memory limit is 256 MiB in the chart:
// near this limit they collect garbage more often instead of growing into it.
const memoryLimit = 96 << 20

// tune sets how many threads run Go code at once and the memory limit, unless
// GOMAXPROCS and GOMEMLIMIT set them.
func tune(procs int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(procs, runtime.NumCPU()))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
