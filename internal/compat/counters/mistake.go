package counters

import (
	"fmt"
	"strings"
)

// Mistake is one error in a counters file.
type Mistake struct {
	File string
	// Line and Column count from 1, Column in bytes.
	Line, Column int
	// Text states what was found and what is accepted.
	Text string
}

// Error returns the mistake as one line: file:line:column: text.
func (m Mistake) Error() string { return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text) }

// Mistakes are the errors of a file in the order of its lines, up to
// maxMistakes.
type Mistakes []Mistake

// Error returns the mistakes, one per line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].Error()
	}
	return strings.Join(lines, "\n")
}
