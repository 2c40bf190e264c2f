package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
)

// rulesCommand is `accel-exporter rules`: rule files checked and tested, and
// what a running exporter makes of its rules. What knows rules is accel-rules.
func rulesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them.")
	program := app.Flag("rules.program", "The program that knows rules, accel-rules. By default the one beside this executable.").PlaceHolder("PATH").String()
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
	run := func(in io.Reader, args ...string) error {
		return runRules(ctx, *program, in, stdout, stderr, args)
	}
	switch chosen {
	case check.FullCommand():
		return run(nil, append([]string{"check", ruleproc.Build()}, *checked...)...)
	case test.FullCommand():
		return run(nil, append([]string{"test", ruleproc.Build()}, *tested...)...)
	}
	var report json.RawMessage
	if err := ask.get(ctx, "/debug/rules", "explain=1", &report); err != nil {
		return err
	}
	if !*asJSON {
		return run(bytes.NewReader(report), "print", ruleproc.Build())
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, report, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, &pretty)
	return err
}

// runRules runs accel-rules. What that has to say it says itself.
func runRules(ctx context.Context, program string, in io.Reader, stdout, stderr io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, rulesProgram(program), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, stdout, stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return errPrinted
	}
	if err != nil {
		return ruleproc.NoProgram(err)
	}
	return nil
}
