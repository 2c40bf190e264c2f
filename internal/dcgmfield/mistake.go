package dcgmfield

import (
	"fmt"
	"strings"
)

// Mistake is one thing that is wrong in a counters file.
type Mistake struct {
	File string
	// Line and Column count from 1, Column in bytes.
	Line, Column int
	// Text says what was found and what is accepted.
	Text string
}

// Error returns the mistake as one line: file:line:column: text.
func (m Mistake) Error() string { return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text) }

// Mistakes is everything that is wrong in a file, in the order of its lines, or
// the first hundred of it.
type Mistakes []Mistake

// Error returns the mistakes, one per line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].Error()
	}
	return strings.Join(lines, "\n")
}

// quote returns s quoted, and cut where it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}

// distance is the number of letters to insert, delete or replace between a and
// b, or some number above most.
func distance(a, b string, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
