package kube

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of any document: how deep it may nest, and the bytes of a key that is
// looked at.
const (
	maxDepth = 256
	maxKey   = 512
)

var (
	errJSON     = errors.New("not JSON")
	errTooLarge = errors.New("larger than the limit")
)

// scanner reads JSON from a stream. It holds a buffer of fixed size and what
// it was asked to keep; what is skipped is never held, and is checked for its
// structure only.
type scanner struct {
	r    *bufio.Reader
	left int // bytes that may still be read
}

func newScanner(r io.Reader) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 8<<10)}
}

// start returns the first byte of the next document, for which limit bytes are
// given, or io.EOF where the stream ends before it.
func (s *scanner) start(limit int) (byte, error) {
	s.left = limit
	return s.token()
}

func (s *scanner) next() (byte, error) {
	if s.left <= 0 {
		return 0, errTooLarge
	}
	s.left--
	return s.r.ReadByte()
}

// token returns the next byte that is not white space.
func (s *scanner) token() (byte, error) {
	for {
		switch b, err := s.next(); {
		case err != nil:
			return 0, err
		case b == ' ' || b == '\t' || b == '\n' || b == '\r':
		default:
			return b, nil
		}
	}
}

// skip reads past the value that begins with first.
func (s *scanner) skip(first byte) error {
	var open [maxDepth]byte
	depth := 0
	for b := first; ; {
		switch b {
		case '"':
			if _, _, err := s.str(0); err != nil {
				return err
			}
		case '{', '[':
			if depth == maxDepth {
				return errTooLarge
			}
			open[depth] = b + 2 // '}' and ']'
			depth++
		case '}', ']':
			if depth == 0 || open[depth-1] != b {
				return errJSON
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return errJSON
			}
		default:
			if _, err := s.bare(b, nil); err != nil {
				return err
			}
		}
		if depth == 0 {
			return nil
		}
		var err error
		if b, err = s.token(); err != nil {
			return err
		}
	}
}

// bare reads the number, true, false or null that begins with first, the
// beginning of it into text, and returns how many bytes of it are there.
func (s *scanner) bare(first byte, text []byte) (int, error) {
	n := 0
	for b := first; ; n++ {
		if strings.IndexByte("+-.0123456789aeflnrstuE", b) < 0 {
			if n == 0 {
				return 0, errJSON
			}
			s.left++
			return min(n, len(text)), s.r.UnreadByte()
		}
		if n < len(text) {
			text[n] = b
		}
		var err error
		if b, err = s.next(); err != nil {
			return 0, err
		}
	}
}

// str reads the rest of a string whose opening quote was read. It is whole
// where it is valid and has at most limit bytes; else what is returned of it
// is empty.
func (s *scanner) str(limit int) (text string, whole bool, err error) {
	var raw []byte
	escaped, over := false, false
	for {
		b, err := s.next()
		switch {
		case err != nil:
			return "", false, err
		case b == '"':
			if over {
				return "", false, nil
			}
			text, whole = unquote(raw, escaped)
			if !whole || len(text) > limit {
				return "", false, nil
			}
			return text, true, nil
		case b < ' ':
			return "", false, errJSON
		}
		keep := [2]byte{b}
		n := 1
		if b == '\\' {
			escaped = true
			if keep[1], err = s.next(); err != nil {
				return "", false, err
			}
			n = 2
		}
		// An escape takes up to six bytes for one, and a pair of them twelve for
		// four.
		if over = over || len(raw)+n > 6*limit; !over {
			raw = append(raw, keep[:n]...)
		}
	}
}

func unquote(raw []byte, escaped bool) (string, bool) {
	if !escaped {
		return string(raw), utf8.Valid(raw)
	}
	var text string
	quoted := append(append([]byte{'"'}, raw...), '"')
	return text, utf8.Valid(raw) && json.Unmarshal(quoted, &text) == nil
}

// object reads the value that begins with first. Where it is an object, field
// is called for each key with the first byte of its value, which it must read.
// A key that is not whole is empty.
func (s *scanner) object(first byte, field func(key string, first byte) error) error {
	if first != '{' {
		return s.skip(first)
	}
	return s.elements('}', func(b byte) error {
		if b != '"' {
			return errJSON
		}
		key, _, err := s.str(maxKey)
		if err != nil {
			return err
		}
		if b, err = s.token(); err != nil || b != ':' {
			return errors.Join(err, errJSON)
		}
		if b, err = s.token(); err != nil {
			return err
		}
		return field(key, b)
	})
}

// array reads the value that begins with first. Where it is an array, element
// is called with the first byte of each, which it must read.
func (s *scanner) array(first byte, element func(first byte) error) error {
	if first != '[' {
		return s.skip(first)
	}
	return s.elements(']', element)
}

// elements reads what is separated by commas up to end.
func (s *scanner) elements(end byte, element func(first byte) error) error {
	for n := 0; ; n++ {
		b, err := s.token()
		if err != nil {
			return err
		}
		if b == end {
			return nil
		}
		if n > 0 {
			if b != ',' {
				return errJSON
			}
			if b, err = s.token(); err != nil {
				return err
			}
		}
		if err := element(b); err != nil {
			return err
		}
	}
}

// text reads the value that begins with first into v where it is a string of
// at most limit bytes, and reports whether it is one.
func (s *scanner) text(first byte, limit int, v *string) (ok bool, err error) {
	if first != '"' {
		return false, s.skip(first)
	}
	text, ok, err := s.str(limit)
	if ok {
		*v = text
	}
	return ok, err
}

// whole reads the value that begins with first into v where it is a whole
// number.
func (s *scanner) whole(first byte, v *int64) error {
	if first != '-' && (first < '0' || first > '9') {
		return s.skip(first)
	}
	var text [32]byte
	n, err := s.bare(first, text[:])
	if i, bad := strconv.ParseInt(string(text[:n]), 10, 64); bad == nil {
		*v = i
	}
	return err
}
