package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "Write nothing; fail where a file is not current.")
	out := flag.String("out", ".", "Directory of the JSON files.")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards: error:", err)
		os.Exit(1)
	}
}

func run(out string, check bool) error {
	known := map[string]bool{}
	for _, b := range boards() {
		data, err := b.json()
		if err != nil {
			return fmt.Errorf("%s: %w", b.uid, err)
		}
		path := filepath.Join(out, b.uid+".json")
		known[path] = true
		if err := put(path, data, check); err != nil {
			return err
		}
	}
	return unknownFile(out, known)
}

// boards lists all dashboards, most general first.
func boards() []board {
	return []board{
		fleet(), idle(), drift(), node(), device(), fpga(), workload(), exporter(), remediation(),
	}
}

func put(path string, data []byte, check bool) error {
	if !check {
		return os.WriteFile(path, data, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, data) {
		return fmt.Errorf("%s is not current: make generate", path)
	}
	return nil
}

// unknownFile returns an error if a file of a removed dashboard is left.
func unknownFile(out string, known map[string]bool) error {
	paths, err := filepath.Glob(filepath.Join(out, "*.json"))
	for _, p := range paths {
		if !known[p] {
			return fmt.Errorf("%s belongs to no dashboard", p)
		}
	}
	return err
}
