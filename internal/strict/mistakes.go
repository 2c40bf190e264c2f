package strict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing that is wrong in a file.
type Mistake struct {
	File string
	// Line counts from 1.
	Line int
	// Path is the key as one would name it: metrics.drop[2]. It is empty
	// where the file as a whole is meant.
	Path string
	// Text says what was found and what is accepted.
	Text string
}

// Error returns the mistake as one line: file:line: path: text.
func (m Mistake) Error() string {
	if m.Path == "" {
		return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", m.File, m.Line, m.Path, m.Text)
}

// Mistakes is everything that is wrong in a file, in the order of its lines.
type Mistakes []Mistake

// Error returns the mistakes, one per line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Join returns what several readers found wrong in one file: Mistakes in the
// order of its lines, each once. Other errors stand as errors.Join has them.
func Join(errs ...error) error {
	var all Mistakes
	var others []error
	for _, err := range errs {
		if m, ok := errors.AsType[Mistakes](err); ok {
			for _, one := range m {
				if !slices.Contains(all, one) {
					all = append(all, one)
				}
			}
		} else if err != nil {
			others = append(others, err)
		}
	}
	slices.SortStableFunc(all, func(a, b Mistake) int { return a.Line - b.Line })
	if len(all) == 0 {
		return errors.Join(others...)
	}
	if len(others) == 0 {
		return all
	}
	return errors.Join(append(others, all)...)
}
