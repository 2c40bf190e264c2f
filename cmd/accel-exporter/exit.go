package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// errDone is returned after --help or --version, which are printed already.
var errDone = fmt.Errorf("done")

// badUse is an error of the command line, for which a command exits with 2.
type badUse struct{ error }

// exitCode prints err and returns the status to exit with.
func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, errDone):
		return 0
	case errors.Is(err, errPrinted):
		return 1
	}
	fmt.Fprintf(os.Stderr, "accel-exporter: %s\n", err)
	if errors.As(err, new(badUse)) {
		return 2
	}
	return 1
}

// errPrinted is the error of a run that has already printed its errors.
var errPrinted = errors.New("")

// memoryLimit bounds the Go memory of the exporter and of each worker, in
// bytes. Both share a container whose memory limit is 256 MiB in the chart:
// near this limit they collect garbage more often instead of growing into it.
const memoryLimit = 96 << 20

// tune sets how many threads run Go code at once and the memory limit, unless
// GOMAXPROCS and GOMEMLIMIT set them. A second thread would be woken in each round, for
// a fifth of the CPU time of a node at rest. Threads blocked in the kernel or in a
// library are not counted.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
