// Command accel-traces sends traces of allocations for accel-exporter, which
// starts it where that is asked for.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/accel-exporter/accel-exporter/internal/traceapp"
)

func main() {
	// A Ctrl-C is for the exporter, which ends this process once spans that
	// wait have been sent.
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		signal.Ignore(os.Interrupt, syscall.SIGHUP)
	}
	os.Exit(traceapp.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
