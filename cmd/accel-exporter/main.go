// Command accel-exporter samples the accelerators of a node and serves their
// metrics to Prometheus. It is two programs in one: the exporter, which
// never touches a device, and the worker it starts for every native library
// (accel-exporter worker NAME), which never touches the network.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
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
