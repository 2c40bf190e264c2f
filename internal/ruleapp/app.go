// Package ruleapp is the program accel-rules: the rule engine and what tells
// Alertmanagers of its alerts, in a process that the exporter starts where
// rules are evaluated; and the commands that need the engine too.
package ruleapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
	rules "github.com/accel-exporter/accel-exporter/rules/engine"
)

const usage = `accel-rules is a part of accel-exporter, which starts it.

  accel-exporter rules --help    check, test and explain rules
  accel-rules --version          what it was made from
`

// Main runs the program with its arguments and returns its exit status.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := run(ctx, args, stdin, stdout, stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	return 1
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New(strings.TrimSpace(usage))
	}
	command, rest := args[0], args[1:]
	switch command {
	case "--version", "-V":
		fmt.Fprintln(stdout, version.Print("accel-rules"))
		return nil
	case "--help", "-h":
		fmt.Fprint(stdout, usage)
		return nil
	case "serve":
		return serve(stdin, os.NewFile(3, "answers"))
	}
	// The others say first for which build they are meant.
	if len(rest) == 0 || rest[0] != ruleproc.Build() {
		return fmt.Errorf("accel-rules is of the build %q and was asked by another; install it and accel-exporter from one release", ruleproc.Build())
	}
	switch files := rest[1:]; command {
	case "check":
		return rules.Check(stdout, files...)
	case "test":
		return rules.Test(ctx, stdout, files...)
	case "fetch":
		return fetchWith(ctx, files, stdout)
	case "print":
		return printReport(stdin, stdout)
	}
	return fmt.Errorf("no command is called %q", command)
}

// serve is the engine's process: it works until the exporter is gone.
func serve(in io.Reader, out io.Writer) error {
	if out == nil {
		return errors.New("accel-rules serve is for accel-exporter to start")
	}
	peer.Tune()
	var e *engine
	err := ruleproc.Serve(in, out, ruleproc.Build(), func(p *ruleproc.Parent) ruleproc.Engine {
		e = newEngine(p)
		return e
	})
	if err == nil || !errors.Is(err, collector.ErrProtocol) {
		e.close()
	}
	return err
}
