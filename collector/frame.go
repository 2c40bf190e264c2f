package collector

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

const (
	// FrameHeader is the length in bytes of the header of a frame.
	FrameHeader = 12
	// MaxFrame bounds the payload of a frame, in bytes.
	MaxFrame = 32 << 20
)

// FrameKind says what the payload of a frame is; each protocol has its own.
type FrameKind uint8

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
