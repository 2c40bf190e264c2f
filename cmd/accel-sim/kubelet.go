package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

func (c *command) addKubelet(app *kingpin.Application, actions map[string]func() error) {
	cmd := app.Command("kubelet", "Serve the PodResources API of a simulation that `accel-sim compile` has set up, until interrupted. Prints the path of the socket when it is ready.")
	actions[cmd.FullCommand()] = c.serveKubelet
}

func (c *command) serveKubelet() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if c.state, err = filepath.Abs(c.state); err != nil {
		return err
	}
	wait, err := sim.ServeKubelet(ctx, c.state)
	if err != nil {
		return err
	}
	defer wait()
	fmt.Println(sim.KubeletSocket(c.state))
	<-ctx.Done()
	return nil
}
