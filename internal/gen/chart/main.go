// Command chartgen writes what the Helm chart has from elsewhere: copies of the
// rules, dashboards, the adapter's configuration and the remediator's policy,
// since a chart reads only files of its own, and the table of values in its
// README, from the comments in values.yaml. With -check it writes nothing and fails where a file is not
// what it would write.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const chart = "deploy/helm/accel-exporter"

// copies are the files of the chart, by where they come from.
var copies = []struct{ from, to string }{
	{"rules/*.yaml", "files/rules"},
	{"dashboards/*.json", "files/dashboards"},
	{"deploy/prometheus-adapter/config.yaml", "files/prometheus-adapter"},
	{"deploy/remediator/policy.yml", "files/remediator"},
}

func main() {
	check := flag.Bool("check", false, "compare with the files instead of writing them")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "chartgen:", err)
		os.Exit(1)
	}
}

// run writes or checks the files of the chart in the repository at root.
func run(root string, check bool) error {
	dir := filepath.Join(root, chart)
	want := map[string][]byte{}
	for _, c := range copies {
		paths, err := filepath.Glob(filepath.Join(root, c.from))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if want[filepath.Join(dir, c.to, filepath.Base(path))], err = os.ReadFile(path); err != nil {
				return err
			}
		}
		if err := leftOver(filepath.Join(dir, c.to), want, check); err != nil {
			return err
		}
	}
	values, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return err
	}
	readme := filepath.Join(dir, "README.md")
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	if want[readme], err = withTable(text, values); err != nil {
		return fmt.Errorf("%s: %w", readme, err)
	}
	for path, data := range want {
		if err := put(path, data, check); err != nil {
			return err
		}
	}
	return nil
}

// leftOver removes or tells of files in dir that are copies of nothing.
func leftOver(dir string, want map[string][]byte, check bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, ok := want[path]; ok {
			continue
		}
		if check {
			return fmt.Errorf("%s is a copy of nothing: run make generate", path)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file, or compares it.
func put(path string, data []byte, check bool) error {
	if !check {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
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
