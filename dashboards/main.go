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
	values := flag.String("values", "../rules/values.yml", "Thresholds of the rules.")
	flag.Parse()
	if err := run(*out, *values, *check); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards: error:", err)
		os.Exit(1)
	}
}

func run(out, values string, check bool) error {
	v, err := loadValues(values)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, b := range boards(v) {
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
	if v.missing != nil {
		return v.missing
	}
	return unknownFile(out, known)
}

// boards lists all dashboards, most general first.
func boards(v *values) []board {
	return []board{
		fleet(v), idle(v), drift(v), node(v), device(v), fpga(v), workload(v), exporter(v), remediation(v),
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
		return fmt.Errorf("%s is not current: make dashboards", path)
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
