package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// values are the thresholds that the rules compare with. The first one that is
// asked for and not there, or is no number, is kept in missing.
type values struct {
	path    string
	text    map[string]string
	missing error
}

// loadValues reads a file of lines "key: value".
func loadValues(path string) (*values, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := &values{path: path, text: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(line, ":")
		if found && !strings.HasPrefix(line, "#") {
			v.text[key] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return v, nil
}

func (v *values) string(key string) string {
	s, ok := v.text[key]
	if !ok {
		v.fail(fmt.Errorf("%s: %s is missing", v.path, key))
	}
	return s
}

func (v *values) number(key string) float64 {
	f, err := strconv.ParseFloat(v.string(key), 64)
	if err != nil {
		v.fail(fmt.Errorf("%s: %s: %w", v.path, key, err))
	}
	return f
}

func (v *values) duration(key string) time.Duration {
	d, err := time.ParseDuration(v.string(key))
	if err != nil {
		v.fail(fmt.Errorf("%s: %s: %w", v.path, key, err))
	}
	return d
}

func (v *values) fail(err error) {
	if v.missing == nil {
		v.missing = err
	}
}
