// Command accel-exporter samples the accelerators of a node and serves their
// metrics to Prometheus. It is two programs in one: the exporter, which
// never touches a device, and the worker it starts for every native library
// (accel-exporter worker NAME), which never touches the network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
)

func main() {
	tune()
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		os.Exit(exitCode(work(os.Args[2], os.Args[3:])))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err))
}

// command runs the subcommand that args begin with, or else the exporter.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		if c, known := commands()[args[0]]; known {
			return c(ctx, args[1:], stdout, stderr)
		}
		switch args[0] {
		case "--completion-bash":
			return complete(ctx, args[1:], stdout, stderr)
		case "help":
			return command(ctx, append(slices.Clone(args[1:]), "--help"), stdout, stderr)
		case "version":
			args = append([]string{"--version"}, args[1:]...)
		default:
			if !strings.HasPrefix(args[0], "-") {
				return badUse{fmt.Errorf("unexpected %s%s, try --help", args[0], didYouMean("", args[0], commandNames()))}
			}
		}
	}
	return runExporter(ctx, args, stdout, stderr)
}

// commands are the subcommands; help and version are others.
func commands() map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"alerts":   alertsCommand,
		"baseline": baselineCommand,
		"bundle":   bundleCommand,
		"doctor":   doctorCommand,
		"rules":    rulesCommand,
		"top":      topCommand,
		"who":      whoCommand,
	}
}

func commandNames() []string { return slices.Sorted(maps.Keys(commands())) }

// complete prints what the last of words can be. The scripts of --completion-script-bash
// and --completion-script-zsh run it at each Tab.
func complete(ctx context.Context, words []string, stdout, stderr io.Writer) error {
	if len(words) > 1 && words[0] == "help" {
		words = words[1:]
	}
	switch {
	case len(words) == 1 && !strings.HasPrefix(words[0], "-"):
		_, err := fmt.Fprintln(stdout, strings.Join(append(commandNames(), "help", "version"), "\n"))
		return err
	case len(words) > 1:
		if c, known := commands()[words[0]]; known {
			return c(ctx, append([]string{"--completion-bash"}, words[1:]...), stdout, stderr)
		}
	}
	return runExporter(ctx, append([]string{"--completion-bash"}, words...), stdout, stderr)
}

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
