package baseline

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// maxText bounds a text of the catalogue, in bytes.
const maxText = 200

// Pattern is a text in which * matches any sequence of characters, including
// none.
type Pattern string

// UnmarshalText accepts a printable text of at most 200 bytes.
func (p *Pattern) UnmarshalText(b []byte) error {
	*p = Pattern(b)
	return checkText(string(b))
}

// checkText rejects texts that are unreadable on a page or in a message.
func checkText(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("found an empty text; accepted are 1 to %d bytes", maxText)
	case len(s) > maxText:
		return fmt.Errorf("found a text of %d bytes; accepted are 1 to %d", len(s), maxText)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("found %s; accepted are printable characters", wording.Quote(s))
	}
	return nil
}

// matches reports whether p matches the whole of s.
func (p Pattern) matches(s string) bool {
	head, rest, wild := strings.Cut(string(p), "*")
	if !wild {
		return string(p) == s
	}
	s, ok := strings.CutPrefix(s, head)
	for ok {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		_, s, ok = strings.Cut(s, part)
		rest = next
	}
	return false
}

// PCIID is a PCI vendor and device id: 10de:2330.
type PCIID string

// lazily compiles a pattern on first use: most nodes have no baseline, and
// workers never do.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var pciID = lazily(`^[0-9a-f]{4}:[0-9a-f]{4}$`)

// UnmarshalText accepts two numbers of four lower-case hexadecimal digits.
func (p *PCIID) UnmarshalText(b []byte) error {
	if !pciID().Match(b) {
		return fmt.Errorf("found %s; accepted is vendor:device in lower-case hexadecimal, such as 10de:2330", wording.Quote(string(b)))
	}
	*p = PCIID(b)
	return nil
}
