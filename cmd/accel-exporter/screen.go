package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"github.com/accel-exporter/accel-exporter/internal/status"
)

// viewFlags select how a command shows the answer of an exporter.
type viewFlags struct {
	json  bool
	color string
}

func (f *viewFlags) add(app *kingpin.Application) {
	app.Flag("json", "Print the answer as JSON.").BoolVar(&f.json)
	app.Flag("color", "Use colours: auto (on a terminal, unless NO_COLOR is set), always or never.").Default("auto").EnumVar(&f.color, "auto", "always", "never")
}

// screen is what a command prints on. Its width is 0 where lines have no limit, as
// in a file.
type screen struct {
	io.Writer
	width int
	color bool
}

func (f *viewFlags) screen(out io.Writer) *screen {
	s := &screen{Writer: out, color: f.color == "always"}
	if file, ok := out.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
			s.width = max(int(size.Col), 40)
			s.color = s.color || f.color == "auto" && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		}
	}
	return s
}

// show prints a value, as JSON if a flag asks for it.
func show[T any](f *viewFlags, out io.Writer, v T, write func(*screen, T) error) error {
	if f.json {
		return writeJSON(out, v)
	}
	return write(f.screen(out), v)
}

// writeJSON writes a value as JSON for people and programs.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Colours, as parameters of the terminal's SGR.
const (
	red    = "31"
	yellow = "33"
	green  = "32"
	bold   = "1"
	faint  = "2"
)

func (s *screen) paint(color, text string) string {
	if !s.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// clean removes what a terminal could take for a command, and what reorders or hides
// text: names of pods and messages of drivers are not ours.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// column is a column of a table. Where the screen is too narrow, columns with a rank
// are left out, the highest first, and the widest columns with least > 0 are cut, at
// most to that width. Ranks above minor are left out before any column is cut.
type column struct {
	title string
	least int
	color func(string) string
	rank  int
	right bool // aligned
}

const minor = 2

// table has rows of cells.
type table struct {
	columns []column
	rows    []row
}

// row is a line of a table. Its note is the last column, or below on a screen that is
// too narrow. Below are what is wrong, what to do, and the page below Docs. The id is
// what a frame selects by.
type row struct {
	id                 string
	cells              []string
	note               string
	reasons, cure, doc string
}

func (t *table) add(note string, cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	t.rows = append(t.rows, row{cells: cells, note: clean(note)})
}

func (t *table) print(s *screen) {
	widths := make([]int, len(t.columns))
	for _, row := range t.rows {
		for i, c := range row.cells {
			if c != unmeasured {
				widths[i] = max(widths[i], utf8.RuneCountInString(c))
			}
		}
	}
	total := func(cut bool) (sum int) {
		for i, w := range widths {
			if c := t.columns[i]; (cut || c.rank > 0) && c.least > 0 {
				w = min(w, c.least)
			}
			if w > 0 {
				sum += w + 2
			}
		}
		return sum - 2
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		if titles[i] = c.title; widths[i] > 0 { // an empty column is left out
			widths[i] = max(widths[i], utf8.RuneCountInString(c.title))
		}
	}
	for s.width > 0 && total(false) > s.width {
		last := 0
		for i, c := range t.columns {
			if widths[i] > 0 && (widths[last] == 0 || c.rank > t.columns[last].rank) {
				last = i
			}
		}
		if rank := t.columns[last].rank; rank == 0 || rank <= minor && total(true) <= s.width {
			break
		}
		widths[last] = 0
	}
	full := func() (sum int) {
		for _, w := range widths {
			sum += w + min(w, 1)*2
		}
		return sum - 2
	}
	for s.width > 0 && full() > s.width {
		widest := -1
		for i, c := range t.columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	beside := s.width == 0
	if !beside {
		longest := 0
		for _, r := range t.rows {
			longest = max(longest, utf8.RuneCountInString(r.note))
		}
		beside = full()+2+longest <= s.width
	}
	line := func(r row, head bool) {
		var b strings.Builder
		gap := 0
		for i, c := range r.cells {
			if widths[i] == 0 {
				continue
			}
			text := c
			if n := utf8.RuneCountInString(text); n > widths[i] {
				text = string([]rune(text)[:widths[i]-1]) + "…"
			}
			pad := widths[i] - utf8.RuneCountInString(text)
			if t.columns[i].right {
				gap, pad = gap+pad, 0
			}
			b.WriteString(strings.Repeat(" ", gap))
			gap = pad + 2
			switch {
			case head:
				text = s.paint(bold, text)
			case t.columns[i].color != nil:
				text = s.paint(t.columns[i].color(c), text)
			}
			b.WriteString(text)
		}
		if beside && r.note != "" {
			b.WriteString(strings.Repeat(" ", gap) + r.note)
		}
		fmt.Fprintln(s, strings.TrimRight(b.String(), " "))
		s.paragraph("", "    ", r.reasons)
		s.remedy(r.cure, r.doc)
		if !beside {
			s.paragraph(faint, "    ", r.note)
		}
	}
	head := row{cells: titles}
	if beside && slices.ContainsFunc(t.rows, func(r row) bool { return r.note != "" }) {
		head.note = s.paint(bold, "NOTE")
	}
	if strings.Join(titles, "") != "" {
		line(head, true)
	}
	lines, _ := s.Writer.(*frameLines)
	for _, r := range t.rows {
		if lines != nil {
			lines.id = r.id
		}
		line(r, false)
	}
	if lines != nil {
		lines.id = ""
	}
}

// frameLines collects the lines of a frame, with the id of the row of each.
type frameLines struct {
	id    string
	lines []string
	ids   []string
	part  []byte
}

// Write implements io.Writer.
func (f *frameLines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		f.part = append(f.part, line...)
		if !found {
			return n, nil
		}
		f.lines, f.ids = append(f.lines, string(f.part)), append(f.ids, f.id)
		f.part, p = f.part[:0], rest
	}
}

// wrap breaks text at blanks into lines of a width.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		for width > 0 && utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			r := []rune(word)
			lines, word = append(lines, string(r[:width])), string(r[width:])
		}
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// remedy prints what to do and where to read more, a page below Docs.
func (s *screen) remedy(cure, doc string) {
	if doc != "" {
		doc = s.link(status.Docs + doc)
	}
	s.paragraph("", "    ", strings.TrimSpace(cure+" "+doc))
}

// link shortens a URL that is wider than the screen to its path in the repository.
func (s *screen) link(url string) string {
	if path, ok := strings.CutPrefix(url, status.Docs); ok && s.width > 0 && len(url)+4 > s.width {
		return "docs/" + path
	}
	return url
}

// paragraph prints text, if there is some, wrapped where the screen has a width.
func (s *screen) paragraph(color, indent, text string) {
	if text == "" {
		return
	}
	width := s.width - len(indent)
	if s.width == 0 {
		width = 1 << 20
	}
	for _, l := range wrap(clean(text), width) {
		fmt.Fprintln(s, indent+s.paint(color, l))
	}
}

// unmeasured stands for a value that is not known.
const unmeasured = "–"
