package strict

import (
	"fmt"
	"strings"
)

// Mistake is one thing that is wrong in a file.
type Mistake struct {
	File string
	// Line counts from 1, Column in bytes too; 0 where only the line is known.
	Line, Column int
	// Path is the key as one would name it: alertmanager.endpoints[2]. It is empty
	// where the file as a whole is meant.
	Path string
	// Text has the value found and the accepted values.
	Text string
}

// Error returns the mistake as one line: file:line: path: text.
func (m Mistake) Error() string {
	at := fmt.Sprintf("%s:%d: ", m.File, m.Line)
	if m.Column > 0 {
		at = fmt.Sprintf("%s:%d:%d: ", m.File, m.Line, m.Column)
	}
	if m.Path != "" {
		at += m.Path + ": "
	}
	return at + m.Text
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
