// Command accel-remediator keeps the nodes of a cluster in the state that the
// alerts on their accelerators require.
//
// A webhook of Alertmanager only triggers a pass; its content is ignored. Each
// pass lists the firing alerts from Alertmanager. So a lost, late, repeated or
// forged webhook changes only the time of a pass.
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
