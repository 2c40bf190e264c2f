package faketree

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/gpumetrics"
)

// Limits of a tree file.
const (
	maxFile = 16 << 20 // bytes of the file
	maxPath = 4095     // bytes of a path, as in the kernel
	maxName = 255      // bytes of an element of a path
)

// statement is a line of a tree file other than a comment.
type statement struct {
	line  int
	verb  string // "file", "link", or the directive
	value string // content, target or the value of the directive
	path  string
}

// directives are the words that begin a line, and whether a value precedes the
// path.
var directives = map[string]bool{
	"#err": true, "#mode": true, "#note": true, "#metrics": true, "#dir": false, "#block": false, "#lines": false,
	"#base": false, "#remove": false, "#unplug": false, "#rename": true,
}

// lex parses the lines of a tree file. The errors have the file and the line.
func lex(name string, data []byte) ([]statement, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: %d bytes; a tree file has at most %d", name, len(data), maxFile)
	}
	var all []statement
	var mistakes []error
	n := 0
	for text := range bytes.SplitSeq(data, []byte("\n")) {
		n++
		s, err := lexLine(string(text))
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s:%d: %w", name, n, err))
		}
		if s.verb != "" && err == nil {
			s.line = n
			all = append(all, s)
		}
	}
	return all, errors.Join(mistakes...)
}

func lexLine(text string) (statement, error) {
	if text == "" {
		return statement{}, nil
	}
	if strings.HasPrefix(text, "#") {
		return lexDirective(text)
	}
	if !strings.HasPrefix(text, "/") {
		return statement{}, fmt.Errorf("want an absolute path or a comment, found %.40q", text)
	}
	if name, content, ok := strings.Cut(text, "\t"); ok {
		body, err := unescape(content)
		if err != nil {
			return statement{}, err
		}
		return statement{verb: "file", value: body, path: name}, checkPath(name)
	}
	name, target, ok := strings.Cut(text, " -> ")
	switch {
	case !ok:
		return statement{}, fmt.Errorf("want path<TAB>content or path -> target, found %.80q", text)
	case target == "" || len(target) > maxPath || strings.ContainsRune(target, 0):
		return statement{}, fmt.Errorf("%.80s: the target of a link has 1 to %d bytes and no NUL", name, maxPath)
	}
	return statement{verb: "link", value: target, path: name}, checkPath(name)
}

func lexDirective(text string) (statement, error) {
	word, rest, _ := strings.Cut(text, "\t")
	valued, ok := directives[word]
	if !ok {
		return statement{}, nil
	}
	value, name, two := strings.Cut(rest, "\t")
	if !valued {
		name = rest
	}
	switch {
	case valued && !two:
		return statement{}, fmt.Errorf("want %s<TAB>VALUE<TAB>PATH, found %.80q", word, text)
	case !valued && (two || rest == ""):
		return statement{}, fmt.Errorf("want %s<TAB>PATH, found %.80q", word, text)
	case !valued:
		value = ""
	}
	s := statement{verb: word, value: value, path: name}
	if word == "#base" {
		return s, nil
	}
	return s, errors.Join(checkValue(word, value), checkPath(name))
}

func checkValue(word, value string) error {
	switch word {
	case "#err":
		if _, ok := errnos[value]; !ok {
			return fmt.Errorf("%.40q is no errno that attributes are known to answer", value)
		}
	case "#mode":
		if mode, err := strconv.ParseUint(value, 8, 32); err != nil || mode > 0o777 {
			return fmt.Errorf("%.40q is no mode from 0 to 0777 in octal", value)
		}
	case "#rename":
		return checkPath(value)
	case "#metrics":
		_, err := gpumetrics.Build(value)
		return err
	}
	return nil
}

func checkPath(name string) error {
	if !strings.HasPrefix(name, "/") || name != path.Clean(name) || name == "/" || len(name) > maxPath || strings.ContainsAny(name, "\x00\t\n") || strings.Contains(name, " -> ") {
		return fmt.Errorf("%.80q is no clean absolute path of at most %d bytes", name, maxPath)
	}
	parts := strings.Split(name, "/")
	if i := slices.IndexFunc(parts, func(s string) bool { return len(s) > maxName }); i >= 0 {
		return fmt.Errorf("%.40q… has more than %d bytes", parts[i], maxName)
	}
	return nil
}

// unescape decodes the C escapes of tree files.
func unescape(s string) (string, error) {
	if !strings.ContainsRune(s, '\\') {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", errors.New("the content ends in a lone backslash")
		}
		if at := strings.IndexByte(escapeNames, s[i]); at >= 0 {
			b.WriteByte(escapeBytes[at])
			continue
		}
		if s[i] != 'x' || i+2 >= len(s) {
			return "", fmt.Errorf("unknown escape \\%c; want one of \\n \\t \\r \\0 \\\\ \\xNN", s[i])
		}
		v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("want two hexadecimal digits after \\x, found %.2q", s[i+1:])
		}
		b.WriteByte(byte(v))
		i += 2
	}
	return b.String(), nil
}

const (
	escapeNames = `ntr0\`
	escapeBytes = "\n\t\r\x00\\"
)
