package strict

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Glob returns the paths that patterns of path/filepath.Match, or plain paths,
// stand for, each once. A pattern that matches nothing is an error.
func Glob(patterns []string) ([]string, error) {
	var paths []string
	var errs []error
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w; accepted is a path or a pattern such as rules/*.yaml", p, err))
		case len(found) == 0:
			errs = append(errs, fmt.Errorf("%s: no such file", p))
		}
		for _, path := range found {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, errors.Join(errs...)
}
