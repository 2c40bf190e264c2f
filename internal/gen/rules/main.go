// Command rulegen writes rules/render/rules/*.yaml, which are the forms of the
// rules, from the templates in rules/templates. With the values in
// rules/values.yml it makes rules/*.yaml, which are plain Prometheus rule files,
// and deploy/prometheus/*.yaml, the same as PrometheusRule manifests. With -check
// it writes nothing and fails where a file is not what it would write.
//
// For values of one's own: accel-exporter rules render.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "rulegen:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("rulegen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "compare with the files instead of writing them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, files, err := generate("rules/templates", "rules/values.yml")
	if err != nil {
		return err
	}
	want, err := outputs(s, files, "rules/render/rules", "rules", "deploy/prometheus")
	if err != nil {
		return err
	}
	for path, data := range want {
		if err := put(path, data, *check); err != nil {
			return err
		}
	}
	return nil
}
