package exposition

import "slices"

// word is the codes of a few literals: the bits below 48, their number above.
type word uint64

func (w word) code() uint64 { return uint64(w & (1<<48 - 1)) }
func (w word) len() uint    { return uint(w >> 48) }

// pack encodes the literals of all pieces, which are the same on every page.
func (r *recorder) pack(t *template) {
	for i, p := range r.pieces {
		for j := range t.opsOf(i) {
			o := &t.opsOf(i)[j]
			if o.from < 0 {
				before := len(t.words)
				var code uint64
				var width uint
				for _, x := range r.text[p.begin : p.begin+int(o.n)] {
					c := t.codes.literal[x]
					if width+c.len() > 48 {
						t.words = append(t.words, word(code)|word(width)<<48)
						code, width = 0, 0
					}
					code |= c.code() << width
					width += c.len()
				}
				t.words = append(t.words, word(code)|word(width)<<48)
				o.offset = uint16(len(t.words) - before)
			}
			p.begin += int(o.n)
		}
	}
	t.words = slices.Clip(t.words)
}
