package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var (
	errJSON     = errors.New("not JSON")
	errTooLarge = errors.New("larger than the limit")
	errKind     = errors.New("not what was asked for")
)

// document is the part of a Pod or a ResourceSlice that is read.
type document struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`

		// Of a ResourceSlice.
		Driver string `json:"driver"`
		Pool   struct {
			Name               string `json:"name"`
			Generation         int64  `json:"generation"`
			ResourceSliceCount int64  `json:"resourceSliceCount"`
		} `json:"pool"`
		Devices []sliceDevice `json:"devices"`
	} `json:"spec"`
}

type metadata struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	CreationTimestamp string            `json:"creationTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

// status is the part of an API Status that is read.
type status struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Details struct {
		RetryAfterSeconds int64 `json:"retryAfterSeconds"`
	} `json:"details"`
}

func (s *status) Error() string {
	switch {
	case s.Message != "":
		return clip(s.Message)
	case s.Reason != "":
		return clip(s.Reason)
	}
	return fmt.Sprintf("status %d", s.Code)
}

// bounded is a stream that ends with errTooLarge after end bytes.
type bounded struct {
	r         io.Reader
	read, end int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read >= b.end {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.end-b.read)])
	b.read += int64(n)
	return n, err
}

// decoder reads JSON values of a stream one by one. It buffers one value at a
// time, of at most limit bytes.
type decoder struct {
	*json.Decoder
	in    *bounded
	limit int64
}

func newDecoder(r io.Reader, limit int) *decoder {
	in := &bounded{r: r, end: int64(limit)}
	return &decoder{json.NewDecoder(in), in, int64(limit)}
}

// value decodes the next value into v. A field of another type than v's stays
// empty.
func (d *decoder) value(v any) error {
	d.in.end = d.InputOffset() + d.limit
	err := d.Decode(v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return unmarked(err)
}

// token returns the next token, io.ErrUnexpectedEOF at the end of the stream.
func (d *decoder) token() (json.Token, error) {
	d.in.end = d.InputOffset() + d.limit
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return t, unmarked(err)
}

// unmarked replaces a syntax error by errJSON.
func unmarked(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errJSON
	}
	return err
}

// page is a page of a list without its items.
type page struct {
	Version string `json:"resourceVersion"`
	Token   string `json:"continue"`
}

// readList reads one page of a list of kind, and calls each with every item.
// limit is the size of the largest item in bytes.
func readList(r io.Reader, kind string, limit int, each func(*document)) (page, error) {
	var p page
	var got string
	d := newDecoder(r, limit)
	first, err := d.token()
	if err != nil {
		return p, err
	}
	if first != json.Delim('{') {
		return p, errJSON
	}
	for {
		key, err := d.token()
		if err != nil {
			return p, err
		}
		switch key {
		case json.Delim('}'):
			if got != kind+"List" || p.Version == "" || len(p.Version) > maxVersion {
				return p, fmt.Errorf("%w: a %q and no %sList with a version", errKind, clip(got), kind)
			}
			if len(p.Token) > maxToken {
				return p, errTooLarge
			}
			return p, nil
		case "kind":
			err = d.value(&got)
		case "metadata":
			err = d.value(&p)
		case "items":
			err = readItems(d, each)
		default:
			err = d.value(&struct{}{})
		}
		if errors.Is(err, io.EOF) { // within a document
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return p, err
		}
	}
}

func readItems(d *decoder, each func(*document)) error {
	first, err := d.token()
	if err != nil || first == nil {
		return err // null is an empty list
	}
	if first != json.Delim('[') {
		return errJSON
	}
	for d.More() {
		var o document
		if err := d.value(&o); err != nil {
			return err
		}
		each(&o)
	}
	_, err = d.token()
	return err
}

// event is one event of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// readEvent reads the next event of a watch. It returns io.EOF where the watch
// ends after a whole event.
func readEvent(d *decoder) (event, error) {
	var e *event
	if err := d.value(&e); err != nil {
		return event{}, err
	}
	if e == nil || e.Type == "" {
		return event{}, errJSON
	}
	return *e, nil
}

// decode reads the object of an event into v.
func (e *event) decode(v any) {
	// The syntax was checked with the event. A field of another type than v's
	// stays empty.
	_ = json.Unmarshal(e.Object, v)
}
