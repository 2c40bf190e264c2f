package collector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"time"
)

// The worker protocol. A frame is a fixed header and a payload:
//
//	magic "AX" | kind uint8 | reserved uint8 | length uint32 | crc32 uint32 | payload
//
// Integers are little endian, lengths inside a payload are uvarints. Both
// ends are the same executable, so there is one version only; a Hello with
// another fingerprint of the metric table is refused.
const (
	// FrameHeader is the length in bytes of the header of a frame.
	FrameHeader = 12
	// MaxFrame bounds the payload of a frame, in bytes.
	MaxFrame = 32 << 20

	maxString   = 4 << 10
	maxDevices  = 8 << 10
	maxReadings = 1 << 20
	maxLabels   = 16
	maxKubeIDs  = 1 << 10
	maxClients  = 1 << 12 // of one device
)

// FrameKind says what the payload of a frame is; each protocol has its own.
type FrameKind uint8

const (
	frameHello FrameKind = iota + 1
	frameSample
	frameRound
	frameEvent
)

// WriteFrame writes one frame with one Write. buf must begin with FrameHeader
// bytes for the header, followed by the payload.
func WriteFrame(w io.Writer, kind FrameKind, buf []byte) error {
	payload := buf[FrameHeader:]
	if len(payload) > MaxFrame {
		return fmt.Errorf("frame of %d bytes is over the limit of %d", len(payload), MaxFrame)
	}
	buf[0], buf[1], buf[2], buf[3] = 'A', 'X', byte(kind), 0
	binary.LittleEndian.PutUint32(buf[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(buf[8:], crc32.ChecksumIEEE(payload))
	_, err := w.Write(buf)
	return err
}

// ReadFrame reads one frame, reusing buf for the payload where it is large
// enough, and growing it no faster than the payload arrives. An error other
// than io.EOF means that the stream cannot be trusted any more.
func ReadFrame(r io.Reader, buf []byte) (FrameKind, []byte, error) {
	var h [FrameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, buf, err
	}
	n := int(binary.LittleEndian.Uint32(h[4:]))
	if h[0] != 'A' || h[1] != 'X' || n > MaxFrame {
		return 0, buf, fmt.Errorf("%w: no frame begins with % x", ErrProtocol, h[:8])
	}
	buf = buf[:0]
	for len(buf) < n {
		have := len(buf)
		buf = slices.Grow(buf, min(n-have, max(have, 64<<10)))
		buf = buf[:min(n, cap(buf))]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return 0, buf, unexpected(err)
		}
	}
	if crc32.ChecksumIEEE(buf) != binary.LittleEndian.Uint32(h[8:]) {
		return 0, buf, fmt.Errorf("%w: checksum of a frame of %d bytes differs", ErrProtocol, n)
	}
	return FrameKind(h[2]), buf, nil
}

// unexpected is err, but no clean end of the stream.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fingerprint identifies the metric table of this build.
func fingerprint() uint64 {
	var b []byte
	for _, m := range table {
		b = append(b, m.Name...)
		for _, l := range m.Labels {
			b = append(append(b, ','), l...)
		}
		b = append(b, '\n')
	}
	return uint64(len(table))<<32 | uint64(crc32.ChecksumIEEE(b))
}

func putString(b []byte, s string) []byte {
	if len(s) > maxString {
		s = s[:maxString]
	}
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func putStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = putString(b, s)
	}
	return b
}

func putTime(b []byte, t time.Time) []byte {
	var n int64
	if !t.IsZero() {
		n = t.UnixNano()
	}
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

var errShort = errors.New("payload ends early")

// decoder reads a payload. After the first error every method returns zero
// values, so that callers check once.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a length and refuses one over limit. Each thing counted takes at
// least a byte, so one over the bytes that are left is refused too, before
// anything is allocated for it.
func (d *decoder) count(limit int) int {
	n := d.uvarint()
	if n > uint64(limit) {
		d.fail(fmt.Errorf("count %d is over the limit of %d", n, limit))
		return 0
	}
	if n > uint64(len(d.b)) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

// end reports the first error, bytes left over being one.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail(fmt.Errorf("payload goes on for %d bytes", len(d.b)))
	}
	return d.err
}

func (d *decoder) string() string {
	n := d.count(maxString)
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) strings(limit int) []string {
	n := d.count(limit)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) uint64() uint64 {
	if len(d.b) < 8 {
		d.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

func (d *decoder) float() float64 { return math.Float64frombits(d.uint64()) }

func (d *decoder) time() time.Time {
	if n := int64(d.uint64()); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// metric reads the index of a metric.
func (d *decoder) metric() *Metric {
	i := d.uvarint()
	m := byIndex(int(min(i, math.MaxInt32)))
	if m == nil {
		d.fail(fmt.Errorf("no metric has index %d", i))
	}
	return m
}

func encodeEvent(b []byte, e Event) []byte {
	b = putTime(b, e.Time)
	b = putString(b, e.Device)
	b = putString(b, e.Partition)
	b = putString(b, string(e.Kind))
	return binary.AppendUvarint(b, e.Code)
}

func decodeEvent(b []byte) (Event, error) {
	d := decoder{b: b}
	e := Event{Time: d.time(), Device: d.string(), Partition: d.string(), Kind: EventKind(d.string()), Code: d.uvarint()}
	return e, d.end()
}
