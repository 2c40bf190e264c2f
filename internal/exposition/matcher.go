package exposition

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// matcher finds repetitions in bytes seen for the first time: one candidate
// per hash, the first match taken. It is for the few kilobytes of a page that
// have no template.
type matcher struct{ last [1 << 12]uint16 }

// token is bytes to be written as they are, then a match, unless its length
// is 0.
type token struct {
	literals         []byte
	length, distance int
}

func (m *matcher) tokens(b []byte) iter.Seq[token] {
	return func(yield func(token) bool) {
		for len(b) > 0 {
			n := min(len(b), window)
			if !m.within(b[:n], yield) {
				return
			}
			b = b[n:]
		}
	}
}

// within yields the tokens of at most one window of bytes.
func (m *matcher) within(b []byte, yield func(token) bool) bool {
	clear(m.last[:])
	begin, i := 0, 0
	for i+minMatch <= len(b) {
		four := binary.LittleEndian.Uint32(b[i:])
		slot := &m.last[four*0x9E3779B1>>20]
		from := int(*slot) - 1
		*slot = uint16(i + 1)
		if from < 0 || binary.LittleEndian.Uint32(b[from:]) != four {
			i++
			continue
		}
		n := common(b[from:], b[i:])
		if !yield(token{b[begin:i], n, i - from}) {
			return false
		}
		i += n
		begin = i
	}
	return yield(token{literals: b[begin:]})
}

// common is the length of the longest match that x offers to y.
func common(x, y []byte) int {
	limit := min(len(x), len(y), maxMatch)
	n := 0
	for ; n+8 <= limit; n += 8 {
		if d := binary.LittleEndian.Uint64(x[n:]) ^ binary.LittleEndian.Uint64(y[n:]); d != 0 {
			return n + bits.TrailingZeros64(d)/8
		}
	}
	for n < limit && x[n] == y[n] {
		n++
	}
	return n
}
