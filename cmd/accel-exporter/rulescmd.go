package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// rulesCommand is `accel-exporter rules check`.
func rulesCommand(_ context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them. promtool runs their unit tests.")
	check := app.Command("check", "Check rule files and report every mistake with its file and line.")
	checked := check.Arg("FILE", "A path or a pattern.").Required().Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	set, err := engine.Check(stdout, *checked...)
	for _, line := range unknownMetrics(set) {
		fmt.Fprintln(stderr, "warning:", line)
	}
	if err != nil {
		return printConfigError(stderr, err)
	}
	return nil
}
