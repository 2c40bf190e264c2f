package trace

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

const (
	maxHeaders = 64
	maxHeader  = 8 << 10 // bytes of a value
	maxCAFile  = 4 << 20 // bytes
)

// fixedHeaders are the headers that the protocol sets.
var fixedHeaders = []string{"content-type", "content-length", "content-encoding", "host", "connection", "transfer-encoding", "te", "user-agent"}

// ReadHeaders reads a file of headers, a YAML map of names to values, and
// returns it with names in lower case. Its errors contain names but no values.
func ReadHeaders(path string) (map[string]string, error) {
	data, err := readFile(path, strict.MaxSize)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	if err := strict.Decode(path, data, &found); err != nil {
		return nil, discreet(err)
	}
	headers := make(map[string]string, len(found))
	for name, value := range found {
		lower := strings.ToLower(name)
		if err := checkHeader(lower, value); err != nil {
			return nil, fmt.Errorf("%s: header %.80q %w", path, name, err)
		}
		if _, again := headers[lower]; again {
			return nil, fmt.Errorf("%s: header %.80q is given twice, in different case", path, name)
		}
		headers[lower] = value
	}
	if len(headers) > maxHeaders {
		return nil, fmt.Errorf("%s: found %d headers; accepted are at most %d", path, len(headers), maxHeaders)
	}
	return headers, nil
}

// discreet removes the text of the file from mistakes, because it may be secret.
func discreet(err error) error {
	mistakes, ok := errors.AsType[strict.Mistakes](err)
	if !ok {
		return errors.New("the file is not a YAML map of headers")
	}
	for i := range mistakes {
		mistakes[i].Path, mistakes[i].Text = "", `is no header (its text may be secret and is not shown); accepted is one line NAME: "VALUE" for each header, each name once`
	}
	return mistakes
}

func checkHeader(lower, value string) error {
	isToken := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	switch {
	case lower == "" || strings.ContainsFunc(lower, func(r rune) bool { return !isToken(r) }):
		return errors.New("has an invalid name; accepted are letters, digits, dots, - and _")
	case slices.Contains(fixedHeaders, lower) || strings.HasPrefix(lower, "grpc-"):
		return errors.New("is set by the protocol")
	case strings.HasSuffix(lower, "-bin"):
		return errors.New("is a binary header of gRPC; accepted are names that do not end in -bin")
	case len(value) > maxHeader:
		return fmt.Errorf("has %d bytes; accepted are at most %d", len(value), maxHeader)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("has a value with other characters than printable ASCII; accepted is one line")
	}
	return nil
}

// ReadCAs reads a file of PEM certificates.
func ReadCAs(path string) (*x509.CertPool, error) {
	data, err := readFile(path, maxCAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: found no certificate; accepted are one or more as PEM", path)
	}
	return pool, nil
}

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: found more than %d bytes; accepted is a file of at most that size", path, most)
	}
	return data, err
}

// headers are the headers in a file. The file is read again when it changes.
type headers struct {
	path  string // "" for none
	known os.FileInfo
	now   map[string]string
}

// read reads the file if it changed. The previous headers stay after an error.
func (h *headers) read() error {
	if h.path == "" {
		return nil
	}
	info, err := os.Stat(h.path)
	if err != nil {
		return err
	}
	if h.known != nil && os.SameFile(info, h.known) && info.ModTime().Equal(h.known.ModTime()) && info.Size() == h.known.Size() {
		return nil
	}
	now, err := ReadHeaders(h.path)
	if err != nil {
		return err
	}
	h.known, h.now = info, now
	return nil
}
