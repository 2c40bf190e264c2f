package exposition

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
	whole    func(size int) // told before all is written at once
	err      error
	template *template
	starts   []int // where each piece begins on the page
	word     int   // of the template, the next one
	sent     bool  // whether something has been
	z        []byte
	pending  uint64 // bits not yet in z, first bit lowest
	width    uint   // their number, below 8 between symbols
	crc      uint32
	size     uint32
	matcher  matcher
}

var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// begin starts a page of the given number of pieces.
func (d *deflate) begin(out io.Writer, whole func(int), t *template, pieces int) {
	if cap(d.starts) < pieces {
		d.starts = make([]int, pieces)
	}
	d.out, d.whole, d.sent, d.err = out, whole, false, nil
	d.template, d.starts = t, d.starts[:pieces]
	d.word, d.pending, d.width, d.crc, d.size = 0, 0, 0, 0, 0
	d.z = append(d.z[:0], gzipHeader...)
	d.reserve(len(t.codes.header))
	for _, b := range t.codes.header {
		d.put(b.code(), b.len())
	}
}

// line compresses the piece at, which begins at start, and the value after it.
// Pieces come in order. The state of the stream is kept in variables, for
// registers: this is most of what compression costs.
func (d *deflate) line(at, start int, piece, value []byte) {
	d.reserve(len(piece) + len(value))
	t := d.template
	c, starts := t.codes, d.starts
	starts[at] = start
	z, n, pending, width := d.z[:cap(d.z)], len(d.z), d.pending, d.width
	done := 0
	for _, op := range t.opsOf(at) {
		if op.from < 0 {
			for _, w := range t.words[d.word : d.word+int(op.offset)] {
				n, pending, width = put(z, n, pending, width, w.code(), w.len())
			}
			d.word += int(op.offset)
			done += int(op.n)
			continue
		}
		distance := start + done - starts[op.from] - int(op.offset)
		if distance > window {
			// Values longer than those the template was made with can
			// push a match out of the window. It costs bytes, no more.
			for _, x := range piece[done : done+int(op.n)] {
				l := c.literal[x]
				n, pending, width = put(z, n, pending, width, l.code(), l.len())
			}
			done += int(op.n)
			continue
		}
		symbol, extra := distanceSymbol(distance)
		l, s := c.length[op.n], c.distance[symbol]
		code := l.code() | (s.code()|uint64(distance-1)&(1<<extra-1)<<s.len())<<l.len()
		n, pending, width = put(z, n, pending, width, code, l.len()+s.len()+extra)
		done += int(op.n)
	}
	for len(value) >= 3 {
		x, y, w := c.literal[value[0]], c.literal[value[1]], c.literal[value[2]]
		n, pending, width = put(z, n, pending, width, x.code()|(y.code()|w.code()<<y.len())<<x.len(), x.len()+y.len()+w.len())
		value = value[3:]
	}
	for _, x := range value {
		l := c.literal[x]
		n, pending, width = put(z, n, pending, width, l.code(), l.len())
	}
	d.z, d.pending, d.width = z[:n], pending, width
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
	if len(d.z) >= chunk*3/4 {
		d.send()
	}
}

// end completes the member.
func (d *deflate) end() error {
	d.reserve(16)
	end := d.template.codes.literal[endOfBlock]
	d.put(end.code(), end.len())
	if d.width > 0 {
		d.z = append(d.z, byte(d.pending))
	}
	d.z = binary.LittleEndian.AppendUint32(d.z, d.crc)
	d.z = binary.LittleEndian.AppendUint32(d.z, d.size)
	if !d.sent {
		d.whole(len(d.z))
	}
	d.send()
	d.out, d.whole, d.template = nil, nil, nil
	return d.err
}

func (d *deflate) send() {
	if d.sent = true; d.err == nil {
		_, d.err = d.out.Write(d.z)
	}
	d.z = d.z[:0]
	if cap(d.z) > tooMuch {
		d.z = nil
	}
}

// reserve makes room for n symbols, none of which takes more than 15 bits or,
// where it stands for minMatch bytes or more, more than 48.
func (d *deflate) reserve(n int) {
	if need := len(d.z) + 2*n + 24; cap(d.z) < need {
		z := make([]byte, len(d.z), max(need+need/4, chunk))
		copy(z, d.z)
		d.z = z
	}
}

// put adds at most 48 bits to z[:n] and what is pending. There must be room
// for them and eight bytes more: all pending bits are stored each time, and the
// whole bytes among them kept, which is cheaper than asking whether there are
// enough.
func put(z []byte, n int, pending uint64, width uint, code uint64, bits uint) (int, uint64, uint) {
	pending |= code << (width & 7)
	width += bits
	binary.LittleEndian.PutUint64(z[n:n+8], pending)
	return n + int(width>>3), pending >> (width & 56), width & 7
}

func (d *deflate) put(code uint64, bits uint) {
	n := len(d.z)
	n, d.pending, d.width = put(d.z[:cap(d.z)], n, d.pending, d.width, code, bits)
	d.z = d.z[:n]
}

func (d *deflate) literals(b []byte) {
	codes := &d.template.codes.literal
	for len(b) >= 3 {
		x, y, z := codes[b[0]], codes[b[1]], codes[b[2]]
		d.put(x.code()|y.code()<<x.len()|z.code()<<(x.len()+y.len()), x.len()+y.len()+z.len())
		b = b[3:]
	}
	for _, c := range b {
		d.put(codes[c].code(), codes[c].len())
	}
}

func (d *deflate) match(length, distance int) {
	c := d.template.codes
	symbol, extra := distanceSymbol(distance)
	l, s := c.length[length], c.distance[symbol]
	code := l.code() | s.code()<<l.len() | uint64(distance-1)&(1<<extra-1)<<(l.len()+s.len())
	d.put(code, l.len()+s.len()+extra)
}
