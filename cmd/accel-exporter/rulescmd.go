package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// rulesCommand is `accel-exporter rules`: it writes the built-in rules, checks rule
// files and prints the alerts of a running exporter.
func rulesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them. promtool runs their unit tests.")
	check := app.Command("check", "Check rule files and report every mistake with its file and line.")
	checked := check.Arg("FILE", "A path or a pattern.").Required().Strings()
	eval := app.Command("eval", "Print the pending and firing alerts of a running exporter with their causes.")
	var ask askFlags
	ask.add(eval)
	asJSON := eval.Flag("json", "Print the state of every rule as JSON.").Bool()
	var rendering renderFlags
	write := rendering.add(app)
	chosen, err := parseArgs(app, args, stdout, stderr)
	if err != nil {
		return err
	}
	switch chosen {
	case check.FullCommand():
		if err = engine.Check(stdout, *checked...); err == nil {
			err = printUnknown(stderr, *checked...)
		}
	case write.FullCommand():
		err = rendering.run(stdout)
	default:
		return evalRules(ctx, &ask, *asJSON, stdout)
	}
	if err != nil {
		return printConfigError(stderr, err)
	}
	return nil
}

// printUnknown warns of metrics that do not exist.
func printUnknown(w io.Writer, files ...string) error {
	set, err := engine.Load(files...)
	if err != nil {
		return err
	}
	for _, line := range unknownMetrics(set) {
		fmt.Fprintln(w, "warning:", line)
	}
	return nil
}

// evalRules prints the state of the rules of a running exporter.
func evalRules(ctx context.Context, ask *askFlags, asJSON bool, stdout io.Writer) error {
	var data json.RawMessage
	if err := ask.get(ctx, "/debug/rules", "explain=1", &data); err != nil {
		return err
	}
	if asJSON {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, data, "", "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(stdout, &pretty)
		return err
	}
	var report engine.Report
	if err := json.Unmarshal(data, &report); err != nil {
		return errors.New("the exporter's answer is not a report of rules; use accel-exporter of the same version")
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(stdout, clean(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}
