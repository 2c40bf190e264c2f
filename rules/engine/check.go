package engine

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// Check reads rule files, given by path or pattern, and writes a summary of
// each. The error names every mistake in every file.
func Check(w io.Writer, patterns ...string) error {
	paths, err := strict.Glob(patterns)
	if err != nil {
		return err
	}
	longest := Limits{}.withDefaults().Range
	var errs []error
	for _, path := range paths {
		set, err := Load(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, err = fmt.Fprintf(w, "%s: %s\n", path, set.summary(longest))
		errs = append(errs, err)
	}
	// Together, because a rule may be in two files.
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = Load(paths...)
	return err
}

// summary describes the rules in one line.
func (s *Set) summary(longest time.Duration) string {
	kinds := map[string]int{}
	skipped := map[Skip]int{}
	for _, g := range s.Groups {
		for _, r := range g.Rules {
			kinds[r.kind()]++
			skipped[skipOf(g, r, longest)]++
		}
	}
	text := fmt.Sprintf("%d groups, %d alerts, %d recorded series", len(s.Groups), kinds[typeAlerting], kinds[typeRecording])
	if n := skipped[SkipCluster]; n > 0 {
		text += fmt.Sprintf("; %d rules need the series of other nodes and are skipped on a node", n)
	}
	if n := skipped[SkipRange]; n > 0 {
		text += fmt.Sprintf("; %d rules look back more than %v and are skipped on a node", n, longest)
	}
	return text
}
