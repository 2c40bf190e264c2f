// Command docgen writes docs/metrics.md from the metric table, and the JSON schema of
// the configuration file, alone and in that of the chart's values. With -check it
// writes nothing and fails if a file is not current.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

const path = "docs/metrics.md"

func main() {
	check := flag.Bool("check", false, "compare with the file instead of writing it")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	page, err := metricsPage()
	if err != nil {
		return err
	}
	schema, values, err := configSchema()
	if err != nil {
		return err
	}
	for path, want := range map[string][]byte{path: page, schemaPath: schema, valuesPath: values} {
		if !check {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				return err
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, want) {
			return fmt.Errorf("%s is not current: run make generate", path)
		}
	}
	return nil
}
