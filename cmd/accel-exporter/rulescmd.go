package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// rulesCommand is `accel-exporter rules`: it checks rule files and prints the
// alerts of a running exporter.
func rulesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them. promtool runs their unit tests.")
	check := app.Command("check", "Check rule files and report every mistake with its file and line.")
	checked := check.Arg("FILE", "A path or a pattern.").Required().Strings()
	eval := app.Command("eval", "Print the pending and firing alerts of a running exporter with their values and expressions, and the rules that fail.")
	var ask askFlags
	ask.add(eval)
	var view viewFlags
	view.add(eval)
	what := eval.Arg("WHAT", alertsHelp).Strings()
	chosen, err := parseArgs(app, args, stdout, stderr)
	if err != nil {
		return err
	}
	if chosen == eval.FullCommand() {
		return show(ctx, &view, stdout, func(ctx context.Context) (*engine.Report, error) {
			var report engine.Report
			err := ask.get(ctx, "/debug/rules", "", &report)
			narrowAlerts(&report, *what)
			return &report, err
		}, printRules)
	}
	if err = engine.Check(stdout, *checked...); err == nil {
		err = printUnknown(stderr, *checked...)
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

// printRules prints the state of the rules of a running exporter.
func printRules(s *screen, report *engine.Report) error {
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(clean(line), " ")
		text := strings.TrimLeft(line, " ")
		color, indent := "", line[:len(line)-len(text)]
		switch {
		case indent != "":
		case strings.HasPrefix(text, "firing") && strings.Contains(text, `severity="critical"`):
			color = red
		case strings.HasPrefix(text, "firing "), strings.HasPrefix(text, "pending "):
			color = yellow
		}
		if url, ok := strings.CutPrefix(text, "runbook: "); ok {
			text = "runbook: " + s.link(url)
		}
		if s.width == 0 || text == "" {
			fmt.Fprintln(s, indent+s.paint(color, text))
			continue
		}
		s.paragraph(color, indent, text)
	}
	return nil
}
