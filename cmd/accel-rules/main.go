// Command accel-rules evaluates alerting rules for accel-exporter, which
// starts it where that is asked for.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/accel-exporter/accel-exporter/internal/ruleapp"
)

func main() {
	// A Ctrl-C is for the exporter, which ends this process once alerts that
	// wait have been sent.
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		signal.Ignore(os.Interrupt, syscall.SIGHUP)
	}
	os.Exit(ruleapp.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
