// Command rulegen writes rules/*.yaml, which are plain Prometheus rule files,
// and deploy/prometheus/*.yaml, the same as PrometheusRule manifests, from the
// templates in rules/templates and the thresholds in rules/values.yml. With
// -check it writes nothing and fails where a file is not what it would write.
//
// For thresholds of one's own: rulegen -values my.yml -rules DIR -manifests DIR.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	templates := flags.String("templates", "rules/templates", "directory of the templates")
	values := flags.String("values", "rules/values.yml", "file of the thresholds")
	rules := flags.String("rules", "rules", "directory for the rule files")
	manifests := flags.String("manifests", "deploy/prometheus", "directory for the PrometheusRule manifests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	want, err := generate(*templates, *values)
	if err != nil {
		return err
	}
	for name, f := range want {
		for path, data := range map[string][]byte{
			filepath.Join(*rules, name):     f.rules,
			filepath.Join(*manifests, name): f.manifest,
		} {
			if err := put(path, data, *check); err != nil {
				return err
			}
		}
	}
	return nil
}

// put writes a file, or compares it.
func put(path string, data []byte, check bool) error {
	if !check {
		return os.WriteFile(path, data, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, data) {
		return fmt.Errorf("%s is not current: run make generate", path)
	}
	return nil
}
