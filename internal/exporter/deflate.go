package exporter

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// deflate compresses a page into one gzip member. It does not search: a
// template says where each piece repeats an earlier one, and only distances
// depend on how long the values in between have become.
type deflate struct {
	out      io.Writer
	err      error
	template *template
	starts   []int // where each piece begins on the page
	z        []byte
	pending  uint64 // bits not yet in z, first bit lowest
	width    uint   // their number, below 32 between symbols
	crc      uint32
	size     uint32
	matcher  matcher
}

var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// begin starts a page of the given number of pieces.
func (d *deflate) begin(out io.Writer, t *template, pieces int) {
	if cap(d.starts) < pieces {
		d.starts = make([]int, pieces)
	}
	d.out, d.err, d.template, d.starts = out, nil, t, d.starts[:pieces]
	d.pending, d.width, d.crc, d.size = 0, 0, 0, 0
	d.z = append(d.z[:0], gzipHeader...)
	d.reserve(len(t.codes.header))
	for _, b := range t.codes.header {
		d.put(b)
	}
}

// line compresses the piece at, which begins at start, and the value after it.
func (d *deflate) line(at, start int, piece, value []byte) {
	d.reserve(len(piece) + len(value))
	t := d.template
	d.starts[at] = start
	done := 0
	for _, op := range t.opsOf(at) {
		n := int(op.n)
		if op.from >= 0 {
			// Values longer than those the template was made with can
			// push a match out of the window. It costs bytes, no more.
			if distance := start + done - d.starts[op.from] - int(op.offset); distance <= window {
				d.match(n, distance)
				done += n
				continue
			}
		}
		d.literals(piece[done : done+n])
		done += n
	}
	d.literals(value)
}

// foreign compresses bytes that the template does not know.
func (d *deflate) foreign(b []byte) {
	d.reserve(len(b))
	for t := range d.matcher.tokens(b) {
		d.literals(t.literals)
		if t.length > 0 {
			d.match(t.length, t.distance)
		}
	}
}

// sum adds text that has been compressed to the checksum and passes on what
// has come of it.
func (d *deflate) sum(text []byte) {
	d.crc = crc32.Update(d.crc, crc32.IEEETable, text)
	d.size += uint32(len(text))
	if len(d.z) >= chunk {
		d.send()
	}
}

// end completes the member.
func (d *deflate) end() error {
	d.reserve(16)
	d.put(d.template.codes.literal[endOfBlock])
	for d.width > 0 {
		d.z = append(d.z, byte(d.pending))
		d.pending >>= 8
		d.width -= min(d.width, 8)
	}
	d.z = binary.LittleEndian.AppendUint32(d.z, d.crc)
	d.z = binary.LittleEndian.AppendUint32(d.z, d.size)
	d.send()
	d.out, d.template = nil, nil
	return d.err
}

func (d *deflate) send() {
	if d.err == nil {
		_, d.err = d.out.Write(d.z)
	}
	d.z = d.z[:0]
	if cap(d.z) > tooMuch {
		d.z = nil
	}
}

// reserve makes room for n symbols, none of which takes more than 48 bits or,
// where it stands for a single byte, more than 15.
func (d *deflate) reserve(n int) {
	if need := len(d.z) + 2*n + 16; cap(d.z) < need {
		z := make([]byte, len(d.z), max(need, 2*chunk))
		copy(z, d.z)
		d.z = z
	}
}

// put adds bits. There must be room for them.
func (d *deflate) put(b bitString) {
	d.pending |= b.code() << d.width
	d.width += b.len()
	if d.width >= 32 {
		d.drain()
	}
}

func (d *deflate) drain() {
	n := len(d.z)
	d.z = d.z[:n+4]
	binary.LittleEndian.PutUint32(d.z[n:], uint32(d.pending))
	d.pending >>= 32
	d.width -= 32
}

func (d *deflate) literals(b []byte) {
	codes := &d.template.codes.literal
	pending, width, z := d.pending, d.width, d.z
	for _, c := range b {
		s := codes[c]
		pending |= s.code() << (width & 63)
		width += s.len()
		if width >= 32 {
			z = binary.LittleEndian.AppendUint32(z, uint32(pending))
			pending >>= 32
			width -= 32
		}
	}
	d.pending, d.width, d.z = pending, width, z
}

func (d *deflate) match(length, distance int) {
	c := d.template.codes
	d.put(c.length[length])
	symbol, width := distanceSymbol(distance)
	d.put(c.distance[symbol])
	d.put(bitsOf(uint32(distance-1)&(1<<width-1), width))
}
