package exposition

import (
	"cmp"
	"math/bits"
	"slices"
)

// Sizes of the deflate alphabets (RFC 1951, 3.2.5 and 3.2.7).
const (
	literals   = 286 // 256 bytes, the end of the block, 29 lengths
	distances  = 30
	endOfBlock = 256
	minMatch   = 4 // deflate takes 3, which rarely pays
	maxMatch   = 258
	window     = 32 << 10
)

// bitString is a code with its extra bits, first bit lowest: the bits below
// 24, their number above.
type bitString uint32

func bitsOf(code uint32, n uint) bitString { return bitString(code | uint32(n)<<24) }

func (b bitString) code() uint64 { return uint64(b & (1<<24 - 1)) }
func (b bitString) len() uint    { return uint(b >> 24) }

// histogram counts the symbols of a page.
type histogram struct {
	literal  [literals]uint32
	distance [distances]uint32
}

// codes is a pair of Huffman codes in which every symbol has a code, fitted to
// a page that was seen, so that any other page can be written in it, and pages
// like that one in few bits.
type codes struct {
	literal  [endOfBlock + 1]bitString
	length   [maxMatch + 1]bitString // with the extra bits, which a length fixes
	distance [distances]bitString
	header   []bitString // the block header that describes both codes
}

func newCodes(h *histogram) *codes {
	c := new(codes)
	h.literal[endOfBlock]++
	lit := codeLengths(h.literal[:])
	dist := codeLengths(h.distance[:])
	litCodes, distCodes := canonical(lit), canonical(dist)
	copy(c.literal[:], litCodes)
	copy(c.distance[:], distCodes)
	for n := 3; n <= maxMatch; n++ {
		symbol, extra, width := lengthSymbol(n)
		code := litCodes[symbol]
		c.length[n] = bitsOf(uint32(code.code())|extra<<code.len(), code.len()+width)
	}

	// The last block, with codes of its own. Their lengths are written plainly, four
	// bits each: that costs 80 bytes more than the run lengths deflate
	// offers, and spares them.
	c.header = append(c.header, bitsOf(1, 1), bitsOf(2, 2))
	c.header = append(c.header, bitsOf(literals-257, 5), bitsOf(distances-1, 5), bitsOf(19-4, 4))
	plain := make([]uint8, 19)
	for _, symbol := range []int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15} {
		if symbol < 16 {
			plain[symbol] = 4
		}
		c.header = append(c.header, bitsOf(uint32(plain[symbol]), 3))
	}
	plainCodes := canonical(plain)
	for _, n := range append(slices.Clone(lit), dist...) {
		c.header = append(c.header, plainCodes[n])
	}
	return c
}

// lengthSymbol returns the symbol of a match length, its extra bits and their
// number.
func lengthSymbol(n int) (symbol int, extra uint32, width uint) {
	if n == maxMatch {
		return 285, 0, 0
	}
	if n < 11 {
		return 254 + n, 0, 0
	}
	v := uint32(n - 3)
	width = uint(bits.Len32(v)) - 3
	return 257 + int(4*width) + int(v>>width), v & (1<<width - 1), width
}

// distanceSymbol returns the symbol of a match distance and the number of its
// extra bits, which are the lowest of distance-1.
func distanceSymbol(d int) (symbol int, width uint) {
	v := uint32(d - 1)
	if v < 4 {
		return int(v), 0
	}
	width = uint(bits.Len32(v)) - 2
	return int(2*width) + int(v>>width), width
}

// codeLengths returns the lengths of a Huffman code in which every symbol has
// a code and none is longer than 15 bits.
func codeLengths(frequency []uint32) []uint8 {
	weight := make([]uint64, len(frequency))
	for i, f := range frequency {
		weight[i] = 16*uint64(f) + 1
	}
	for {
		lengths := huffman(weight)
		if slices.Max(lengths) <= 15 {
			return lengths
		}
		for i := range weight {
			weight[i] = weight[i]/2 + 1
		}
	}
}

// huffman returns the code lengths of Huffman's algorithm: the two lightest
// nodes are joined until one is left. Joined nodes come up in the order of
// their weight, so that two queues do for a heap.
func huffman(weight []uint64) []uint8 {
	n := len(weight)
	leaves := make([]int, n)
	for i := range leaves {
		leaves[i] = i
	}
	slices.SortFunc(leaves, func(x, y int) int { return cmp.Compare(weight[x], weight[y]) })
	nodes := slices.Clone(weight) // joined nodes follow the leaves
	parent := make([]int, 2*n-1)
	joined := n
	lightest := func() int {
		if len(leaves) > 0 && (joined == len(nodes) || nodes[leaves[0]] <= nodes[joined]) {
			i := leaves[0]
			leaves = leaves[1:]
			return i
		}
		joined++
		return joined - 1
	}
	for len(nodes) < 2*n-1 {
		x := lightest()
		y := lightest()
		parent[x], parent[y] = len(nodes), len(nodes)
		nodes = append(nodes, nodes[x]+nodes[y])
	}
	depth := make([]uint8, 2*n-1)
	for i := 2*n - 3; i >= 0; i-- {
		depth[i] = depth[parent[i]] + 1
	}
	return depth[:n]
}

// canonical returns the codes that deflate derives from code lengths.
func canonical(lengths []uint8) []bitString {
	var count, next [17]uint32
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	for n := 1; n < len(next); n++ {
		next[n] = (next[n-1] + count[n-1]) << 1
	}
	out := make([]bitString, len(lengths))
	for i, n := range lengths {
		if n > 0 {
			// Codes are sent from their highest bit on.
			out[i] = bitsOf(uint32(bits.Reverse16(uint16(next[n]))>>(16-n)), uint(n))
			next[n]++
		}
	}
	return out
}
