package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// rulesInput are the files of the rules as an input.
func rulesInput(f *alertFlags, e *engine.Engine) *input {
	paths := f.paths()
	known := fingerprint(paths)
	pending := known
	return &input{
		path: strings.Join(paths, ", "),
		// A change is reported once two checks find the same state, so that a
		// file is not read while it is written.
		changed: func() (bool, error) {
			now := fingerprint(paths)
			changed := now == pending && now != known
			if pending = now; changed {
				known = now
			}
			return changed, nil
		},
		load: func() (func(), error) {
			known = fingerprint(paths)
			pending = known
			set, err := f.rules()
			if err != nil {
				return nil, err
			}
			return func() { e.Apply(set) }, nil
		},
	}
}

// fingerprint changes with the files that patterns match, after symbolic
// links: Kubernetes updates a ConfigMap by replacing a link.
func fingerprint(patterns []string) string {
	var all []string
	for _, p := range patterns {
		paths, _ := filepath.Glob(p) // engine.Load reports a bad pattern
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				all = append(all, path)
				continue
			}
			all = append(all, fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
