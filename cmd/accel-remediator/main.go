// Command accel-remediator keeps the nodes of a cluster in the state that the
// alerts on their accelerators ask for.
//
// Alertmanager's webhook is a doorbell: its content is not believed, and not
// even read. What fires is asked of Alertmanager each time, so a webhook that
// is lost, late, repeated or forged changes nothing but when that is asked.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/accel-exporter/accel-exporter/cmd/accel-remediator/kube"
)

func main() {
	tune()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "accel-remediator:", err)
		if errors.Is(err, kube.ErrLost) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}
