package alertmanager

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
)

// maxFile is the largest size of a file of credentials or certificates, in
// bytes.
const maxFile = 1 << 20

// secrets reads the files that an endpoint's HTTP settings name, on demand.
// It remembers the credential, to keep it out of errors. It implements
// config.SecretManager, whose own readers are unbounded.
type secrets struct {
	credential string // the file
	username   string

	mu    sync.Mutex
	value string
}

// Fetch returns the content of a file.
func (s *secrets) Fetch(_ context.Context, name string) (string, error) {
	text, err := readFile(name)
	if err != nil {
		return "", &fileError{err}
	}
	if name == s.credential {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return "", &fileError{fmt.Errorf("%s has more than one line", name)}
		}
		s.mu.Lock()
		s.value = text
		s.mu.Unlock()
	}
	return text, nil
}

// fileError is an error of reading credentials or certificates.
type fileError struct{ error }

func (e *fileError) Unwrap() error { return e.error }

func readFile(name string) (string, error) {
	// Reading a pipe would block.
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	text := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxFile:
		return "", fmt.Errorf("%s has more than %d bytes", name, maxFile)
	case text == "":
		return "", fmt.Errorf("%s is empty", name)
	}
	return text, nil
}

// beforeAt matches what may be a password: an error may show a proxy's address
// with one.
var beforeAt = regexp.MustCompile(`[^\s"/]+@`)

// clean removes credentials from a foreign text.
func (s *secrets) clean(text string) string {
	s.mu.Lock()
	value := s.value
	s.mu.Unlock()
	if value != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(s.username + ":" + value))
		text = strings.NewReplacer(basic, "[redacted]", value, "[redacted]").Replace(text)
	}
	return clip(beforeAt.ReplaceAllString(text, "[redacted]@"))
}

// clip makes one line of at most 200 characters of a foreign text.
func clip(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' }), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
