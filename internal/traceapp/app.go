// Package traceapp is the program accel-traces: it makes spans of what the
// exporter tells of allocations and sends them by OTLP, in a process that the
// exporter starts where that is asked for.
package traceapp

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/common/version"
)

const usage = `accel-traces is a part of accel-exporter, which starts it.

  accel-exporter --otlp.endpoint=URL    send traces of allocations
  accel-traces --version                what it was made from
`

// Main runs the program with its arguments and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := run(args, stdin, stdout)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	return 1
}

func run(args []string, _ io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New(strings.TrimSpace(usage))
	}
	switch args[0] {
	case "--version", "-V":
		fmt.Fprintln(stdout, version.Print("accel-traces"))
		return nil
	case "--help", "-h":
		fmt.Fprint(stdout, usage)
		return nil
	}
	return fmt.Errorf("no command is called %q", args[0])
}
