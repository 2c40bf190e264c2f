// Command docgen writes docs/metrics.md from the metric table. With -check it
// writes nothing and fails if the file is not current.
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
	want, err := metricsPage()
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(path, want, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s is not current: run make generate", path)
	}
	return nil
}
