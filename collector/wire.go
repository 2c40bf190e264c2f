package collector

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"
)

// The parent sends requests to a worker's standard input, and the worker sends
// messages on a second pipe. Both are gob streams, divided into frames: "AX",
// the length as a little-endian uint32, and one gob value. A frame bounds what
// a broken worker can make its parent read, and shows output of a library on
// the wrong descriptor at once.

const (
	frameHeader = 6
	maxFrame    = 4 << 20 // bytes of one value; a round of 112 MIG devices takes 0.3 MiB
)

// request asks a worker for one round.
type request struct {
	Seq     uint64
	Timeout time.Duration
}

// message is what a worker sends. One field is set.
type message struct {
	Hello *hello
	Round *roundMessage
	Event *Event
}

// hello is the first message: both ends must be the same build.
type hello struct {
	Source string
	Table  uint64 // the fingerprint of the metric table
}

// fingerprint identifies the metric table of this build.
func fingerprint() uint64 {
	h := fnv.New64a()
	for _, m := range table {
		fmt.Fprintln(h, m.Name, m.Labels)
	}
	return h.Sum64()
}

// frameWriter writes values to one pipe. Goroutines may share it.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf bytes.Buffer
	enc *gob.Encoder
}

func newFrameWriter(w io.Writer) *frameWriter {
	f := &frameWriter{w: w}
	f.enc = gob.NewEncoder(&f.buf)
	return f
}

// write sends one value, a pointer to a struct, in one Write.
func (f *frameWriter) write(v any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf.Reset()
	f.buf.Write(make([]byte, frameHeader))
	if err := f.enc.Encode(v); err != nil {
		return err
	}
	b := f.buf.Bytes()
	n := len(b) - frameHeader
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes exceeds the limit of %d", n, maxFrame)
	}
	b[0], b[1] = 'A', 'X'
	binary.LittleEndian.PutUint32(b[2:], uint32(n))
	_, err := f.w.Write(b)
	return err
}

// frameReader reads what a frameWriter wrote.
type frameReader struct {
	r   io.Reader
	buf bytes.Buffer
	dec *gob.Decoder
}

func newFrameReader(r io.Reader) *frameReader {
	f := &frameReader{r: r}
	f.dec = gob.NewDecoder(&f.buf)
	return f
}

// read decodes the next value into v, which must be zero. io.EOF and
// io.ErrUnexpectedEOF report the end of the stream. After any other error,
// which is an ErrProtocol or one of the underlying reader, the stream cannot
// be used.
func (f *frameReader) read(v any) error {
	var h [frameHeader]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(h[2:]))
	if h[0] != 'A' || h[1] != 'X' || n > maxFrame {
		return fmt.Errorf("%w: no frame begins with % x", ErrProtocol, h)
	}
	f.buf.Reset()
	if _, err := io.CopyN(&f.buf, f.r, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := f.dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	if f.buf.Len() > 0 {
		return fmt.Errorf("%w: %d bytes follow a value", ErrProtocol, f.buf.Len())
	}
	return nil
}
