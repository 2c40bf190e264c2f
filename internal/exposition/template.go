package exposition

import (
	"encoding/binary"
	"math"
	"slices"
)

// template is how to compress the pages of one layout in one format. It is
// made from one such page and fits all.
type template struct {
	codes *codes
	ops   []op
	ends  []int32 // of the ops of each piece
	words []word  // of the ops that are literal, in order
}

// op says that the next n bytes of a piece are those at offset in an earlier
// piece, or, where from is negative, that they are not found earlier and are
// the next offset words.
type op struct {
	from   int32
	offset uint16
	n      uint16
}

func (t *template) opsOf(piece int) []op {
	begin := int32(0)
	if piece > 0 {
		begin = t.ends[piece-1]
	}
	return t.ops[begin:t.ends[piece]]
}

const (
	// reach is the farthest distance that a template uses. The rest of the
	// window is left to values that grow.
	reach = window - 4<<10
	depth = 16 // candidates looked at per position
	lazy  = 32 // bytes of a match that is taken without looking further
)

// recorder keeps a page, to make a template of it.
type recorder struct {
	text    []byte
	pieces  []span
	loose   []span // values and foreign bytes
	matcher matcher
}

type span struct{ begin, end int }

func (r *recorder) line(start int, piece, value []byte) {
	r.pieces = append(r.pieces, span{start, start + len(piece)})
	r.loose = append(r.loose, span{start + len(piece), start + len(piece) + len(value)})
	r.text = append(append(r.text, piece...), value...)
}

func (r *recorder) foreign(start int, b []byte) {
	r.loose = append(r.loose, span{start, start + len(b)})
	r.text = append(r.text, b...)
}

// template searches every piece for matches in the pieces before it. Matches
// in values would not hold for the next page.
func (r *recorder) template() *template {
	t := &template{ends: make([]int32, 0, len(r.pieces))}
	h := new(histogram)
	s := searcher{recorder: r}
	for i, p := range r.pieces {
		for at := p.begin; at < p.end; {
			m := s.longest(i, at)
			if m.n > 0 && m.n < lazy && at+1 < p.end {
				// A longer match may begin one byte later.
				s.insert(at)
				if s.longest(i, at+1).n > m.n+1 {
					m.n = 0
				}
			}
			if m.n == 0 {
				t.literal(i)
				h.literal[r.text[at]]++
				s.insert(at)
				at++
				continue
			}
			t.ops = append(t.ops, m.op)
			h.match(int(m.n), m.distance)
			for range m.n {
				s.insert(at)
				at++
			}
		}
		t.ends = append(t.ends, int32(len(t.ops)))
	}
	for _, v := range r.loose {
		for tok := range r.matcher.tokens(r.text[v.begin:v.end]) {
			for _, c := range tok.literals {
				h.literal[c]++
			}
			if tok.length > 0 {
				h.match(tok.length, tok.distance)
			}
		}
	}
	t.ops = slices.Clip(t.ops)
	t.codes = newCodes(h)
	r.pack(t)
	return t
}

// literal adds a byte to the run of literals that ends piece i so far.
func (t *template) literal(i int) {
	begin := int32(0)
	if i > 0 {
		begin = t.ends[i-1]
	}
	if n := len(t.ops); n > int(begin) && t.ops[n-1].from < 0 && t.ops[n-1].n < math.MaxUint16 {
		t.ops[n-1].n++
		return
	}
	t.ops = append(t.ops, op{from: -1, n: 1})
}

func (h *histogram) match(n, d int) {
	symbol, _, _ := lengthSymbol(n)
	h.literal[symbol]++
	symbol, _ = distanceSymbol(d)
	h.distance[symbol]++
}

// searcher chains the positions of equal four bytes, the latest first.
type searcher struct {
	*recorder
	head [1 << 15]int32 // latest position of a hash, plus one
	prev [window]int32  // the one before it, by position modulo the window
	done int            // positions below are in the chains
}

type found struct {
	op
	distance int
}

func (s *searcher) hash(at int) uint32 {
	return binary.LittleEndian.Uint32(s.text[at:]) * 0x9E3779B1 >> 17
}

func (s *searcher) insert(at int) {
	if at < s.done || at+minMatch > len(s.text) {
		return
	}
	s.done = at + 1
	h := s.hash(at)
	s.prev[at%window] = s.head[h]
	s.head[h] = int32(at + 1)
}

// longest returns the longest match for the bytes of piece i from at on.
func (s *searcher) longest(i, at int) (best found) {
	end := s.pieces[i].end
	if at+minMatch > end {
		return best
	}
	candidate := int(s.head[s.hash(at)]) - 1
	for tries := 0; tries < depth && candidate >= 0 && at-candidate <= reach; tries++ {
		next := at + int(best.n) // the byte that a longer match has as well
		if next == end || best.n == maxMatch {
			break
		}
		if s.text[candidate+int(best.n)] != s.text[next] {
			// No longer match.
		} else if n := common(s.text[candidate:], s.text[at:end]); n >= minMatch && n > int(best.n) {
			from := s.piece(candidate, i)
			n = min(n, s.pieces[from].end-candidate)
			offset := candidate - s.pieces[from].begin
			if n >= minMatch && n > int(best.n) && offset <= math.MaxUint16 {
				best = found{op{int32(from), uint16(offset), uint16(n)}, at - candidate}
			}
		}
		older := int(s.prev[candidate%window]) - 1
		if older >= candidate {
			break
		}
		candidate = older
	}
	return best
}

// piece returns the piece that position at is in, at most i.
func (s *searcher) piece(at, i int) int {
	n, found := slices.BinarySearchFunc(s.pieces[:i+1], at, func(p span, at int) int { return p.begin - at })
	if found {
		return n
	}
	return n - 1
}
