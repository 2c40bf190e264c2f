package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// golden is the page of a node.
const golden = "../cmd/accel-exporter/testdata/golden/h100-8.metrics"

// sample is one line of a page.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// loadPage returns the lines of a golden page, in which values that differ
// from run to run are called VOLATILE.
func loadPage(path string) ([]sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	data = bytes.ReplaceAll(data, []byte(" VOLATILE\n"), []byte(" 1\n"))
	var page []sample
	p := textparse.NewPromParser(data, labels.NewSymbolTable(), false)
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return page, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if kind != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, v := p.Series()
		s := sample{name: l.Get(nameLabel), value: v, labels: map[string]string{}}
		l.Range(func(l labels.Label) {
			if l.Name != nameLabel && l.Value != "" {
				s.labels[l.Name] = l.Value
			}
		})
		page = append(page, s)
	}
}
