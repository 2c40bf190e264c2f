package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/rules"
)

// rulesCommand is `accel-exporter rules`: rule files checked and tested, and
// what a running exporter makes of its rules.
func rulesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them.")
	check := app.Command("check", "Check rule files; every mistake is named by file and line.")
	checked := check.Arg("FILE", "A path or a pattern.").Required().Strings()
	test := app.Command("test", "Run unit tests of rules in promtool's format.")
	tested := test.Arg("FILE", "A path or a pattern.").Required().Strings()
	eval := app.Command("eval", "Say which alerts are pending or firing on a running exporter, and why.")
	var ask askFlags
	ask.add(eval)
	asJSON := eval.Flag("json", "Print all that is known of the rules as JSON.").Bool()
	done := false
	app.UsageWriter(stdout).ErrorWriter(stderr).Terminate(func(int) { done = true })
	app.HelpFlag.Short('h')
	chosen, err := app.Parse(args)
	if done {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w, try --help", err)
	}
	switch chosen {
	case check.FullCommand():
		err = rules.Check(stdout, *checked...)
	case test.FullCommand():
		err = rules.Test(ctx, stdout, *tested...)
	default:
		return evalRules(ctx, &ask, *asJSON, stdout)
	}
	if err != nil {
		return printConfigError(stderr, err)
	}
	return nil
}

func evalRules(ctx context.Context, ask *askFlags, asJSON bool, stdout io.Writer) error {
	var report rules.Report
	if err := ask.get(ctx, "/debug/rules", "explain=1", &report); err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(&report)
	}
	return report.Print(stdout)
}
