// Command dashboards writes the Grafana dashboards into the folder dashboards of the
// repository, one JSON file for each Go file that describes one. It runs in tools.
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
	flag.Parse()
	for _, b := range []board{fleet(), node(), workload(), fpga(), exporter()} {
		if err := b.write(*check); err != nil {
			fmt.Fprintln(os.Stderr, "dashboards: error:", err)
			os.Exit(1)
		}
	}
}

// write makes the file of the dashboard, or compares it with what it would be.
func (b board) write(check bool) error {
	path := filepath.Join("..", "dashboards", b.uid+".json")
	data, err := b.json()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !check {
		return os.WriteFile(path, data, 0o644)
	}
	have, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(have, data) {
		err = fmt.Errorf("%s is not current: make generate", path)
	}
	return err
}
