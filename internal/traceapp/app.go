// Package traceapp is the program accel-traces: it makes OpenTelemetry's spans
// of those that the exporter hands over and sends them by OTLP, in a process
// that the exporter starts where that is asked for. It remembers nothing: what
// waits, waits in the exporter.
package traceapp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/internal/peer"
	"github.com/accel-exporter/accel-exporter/internal/traceproc"
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

func run(args []string, stdin io.Reader, stdout io.Writer) error {
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
	case "serve":
		return serve(stdin, os.NewFile(3, "answers"))
	}
	return fmt.Errorf("no command is called %q", args[0])
}

// serve is the process: it works until the exporter is gone.
func serve(in io.Reader, out io.Writer) error {
	if f, ok := out.(*os.File); ok && f == nil {
		return errors.New("accel-traces serve is for accel-exporter to start")
	}
	peer.Tune()
	return traceproc.Serve(in, out, peer.Build(), func(s traceproc.Settings, log io.Writer) (traceproc.Sender, error) {
		return newSender(s, slog.New(slog.NewJSONHandler(log, nil)))
	})
}
