package counters

import (
	"fmt"
	"strings"
)

// cell is one cell of a row.
type cell struct {
	text   string
	column int // of its first byte, from 1
}

// splitError is where and why a line cannot be split.
type splitError struct {
	column int
	text   string
}

// split cuts a line at its commas. A cell that begins with a double quote ends
// with one; commas in it are text and doubled quotes are quotes. The result has
// at least one cell.
func split(line string) ([]cell, *splitError) {
	var cells []cell
	for at := 0; ; {
		at += blanks(line[at:])
		c := cell{column: at + 1}
		if strings.HasPrefix(line[at:], `"`) {
			text, n := unquote(line[at+1:])
			if n < 0 {
				return nil, &splitError{c.column, "a double quote that is not closed in this line"}
			}
			at += 1 + n
			at += blanks(line[at:])
			if at < len(line) && line[at] != ',' {
				return nil, &splitError{at + 1, fmt.Sprintf("%q after a closing quote; accepted is a comma or the end of the line", line[at])}
			}
			c.text = strings.TrimSpace(text)
		} else {
			n := strings.IndexByte(line[at:], ',')
			if n < 0 {
				n = len(line) - at
			}
			c.text = strings.TrimSpace(line[at : at+n])
			if q := strings.IndexByte(c.text, '"'); q >= 0 {
				return nil, &splitError{c.column + q, "a double quote within a cell; accepted is a cell that is quoted as a whole, with quotes doubled"}
			}
			at += n
		}
		cells = append(cells, c)
		if at == len(line) {
			return cells, nil
		}
		at++ // the comma
	}
}

func blanks(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// unquote returns the text before the closing quote of s, and its length
// including that quote, or -1 without one.
func unquote(s string) (string, int) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != '"' {
			return b.String(), i + 1
		}
		b.WriteByte('"')
		i++
	}
	return "", -1
}
