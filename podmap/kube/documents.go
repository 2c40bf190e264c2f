package kube

import (
	"errors"
	"fmt"
	"io"
)

// page is what a list says beside its items.
type page struct {
	version, token string
}

// readList reads one page of a list of kind, and calls each with every item.
// limit is the size of the largest item in bytes.
func readList(r *reader, kind string, limit int, each func(*object)) (page, error) {
	var p page
	var got string
	var failed status
	first, err := r.start(limit)
	if err != nil {
		return p, unexpected(err)
	}
	if first != '{' {
		return p, errJSON
	}
	err = r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "kind":
			_, err = r.text(first, maxWord, &got)
		case "metadata":
			err = r.listMetadata(first, &p)
		case "status":
			var text string
			_, err = r.text(first, maxWord, &text)
			failed.failure = text == "Failure"
		case "items":
			err = r.array(first, func(first byte) error {
				r.left = limit
				o, err := r.object(first)
				if err == nil {
					each(o)
				}
				return err
			})
			r.left = limit
		default:
			err = r.skip(first)
		}
		return err
	})
	switch {
	case err != nil:
		return p, unexpected(err)
	case failed.failure || got != kind+"List" || p.version == "":
		return p, fmt.Errorf("%w: a %q and no %sList with a version", errKind, got, kind)
	}
	return p, nil
}

var errKind = errors.New("not what was asked for")

func (r *reader) listMetadata(first byte, p *page) error {
	return r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "resourceVersion":
			_, err = r.text(first, maxVersion, &p.version)
		case "continue":
			var ok bool
			if ok, err = r.text(first, maxToken, &p.token); err == nil && !ok && first == '"' {
				err = errTooLarge
			}
		default:
			err = r.skip(first)
		}
		return err
	})
}

// readEvent reads the next event of a watch: its type, and what it is about.
// It returns io.EOF where the watch ends after a whole event.
func readEvent(r *reader, limit int) (string, *object, error) {
	first, err := r.start(limit)
	if err != nil {
		return "", nil, err
	}
	if first != '{' {
		return "", nil, errJSON
	}
	var kind string
	o := new(object)
	err = r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "type":
			_, err = r.text(first, maxWord, &kind)
		case "object":
			o, err = r.object(first)
		default:
			err = r.skip(first)
		}
		return err
	})
	return kind, o, unexpected(err)
}

// unexpected is the error of a stream that ends where it must not.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
