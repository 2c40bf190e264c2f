package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// service is a part of a simulation that runs in this process. It serves the
// simulation at a state file until ctx ends; then end must be called.
type service func(ctx context.Context, state string) (end func(), err error)

// start starts services; the returned function ends them.
func (c *command) start(services ...service) (end func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var ends []func()
	end = func() {
		cancel()
		for _, f := range ends {
			f()
		}
	}
	for _, s := range services {
		f, err := s(ctx, c.state)
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, f)
	}
	return end, nil
}

// supervise runs a program while services run, and ends with it. The services
// run in this process, which forwards signals to the program.
func (c *command) supervise(program string, argv []string, services ...service) error {
	end, err := c.start(services...)
	if err != nil {
		return err
	}
	defer end()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	cmd := exec.Command(program, argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A signal from the terminal reaches only this process, which forwards it
	// once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGHUP {
				s = syscall.SIGTERM // the terminal is gone; an exporter would reload its files
			}
			if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("pass %s on: %w", s, err)
			}
		case err := <-ended:
			return err
		}
	}
}
