package exposition

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// writeNumber writes v at w[n:], which has slack bytes of room, and returns
// where it ends. It is exactly as expfmt writes it, which is strconv's shortest
// 'g' form, and in OpenMetrics with ".0" where that form looks like an integer.
//
// Integers below 2^53 and decimals of at most 15 digits, which is nearly all
// that hardware reports, take a path several times as fast as strconv's. It
// gives the same digits: no two decimals of at most 15 digits are read back as
// the same float64, so a short decimal that is read back as v is the shortest.
func writeNumber(w []byte, n int, v float64, openMetrics bool) int {
	a := math.Abs(v)
	w[n] = '-'
	at := n + int(math.Float64bits(v)>>63) // past the sign, if it counts
	if a < 1<<53 {
		if m := uint64(int64(a)); float64(int64(m)) == a {
			if m >= 1e6 {
				return writeDigits(w, at, m, 0)
			}
			if m == 0 {
				at = n // -0 has no sign in expfmt
			}
			at = writeSmall(w, at, m)
			if openMetrics {
				at += copy(w[at:], ".0")
			}
			return at
		}
	}
	if a >= 1e-4 && a < 1e12 {
		for i := range scales {
			s := &scales[i]
			scaled := a*s.by + 0.5
			if scaled >= 1e15 {
				break
			}
			if m := uint64(int64(scaled)); float64(int64(m))/s.by == a {
				return writeDigits(w, at, m, s.places)
			}
		}
	}
	switch {
	case math.IsNaN(v):
		return n + copy(w[n:], "NaN")
	case v > math.MaxFloat64:
		return n + copy(w[n:], "+Inf")
	case v < -math.MaxFloat64:
		return n + copy(w[n:], "-Inf")
	}
	// Every integer below 1e6 was written above, so that what is left has a
	// point or an exponent.
	return len(strconv.AppendFloat(w[:n], v, 'g', -1, 64))
}

// scales are the numbers of decimal places that are tried: milli for watts
// and joules, micro and nano for durations.
var scales = [...]struct {
	by     float64
	places uint
}{{1e3, 3}, {1e6, 6}, {1e9, 9}}

// slack is room for any number: what is written at once, whatever of it
// counts, goes no further.
const slack = 32

// The digits of a number are held in words as they lie in memory, the first
// digit lowest, and are moved about there: how many there are differs from
// one number to the next, so that any branch or loop over them is mispredicted
// every time.

// eight returns the digits of v < 1e8, as numbers, not characters. It splits
// all groups of digits at once; the multiplications are exact divisions by 100
// and 10 for what a group can hold.
func eight(v uint64) uint64 {
	v = v/1e4 | v%1e4<<32
	hundreds := v * 10486 >> 20 & 0x0000007f_0000007f
	v = hundreds | (v-100*hundreds)<<16
	tens := v * 103 >> 10 & 0x000f_000f_000f_000f
	return tens | (v-10*tens)<<8
}

const characters = 0x30303030_30303030 // makes characters of digits

// writeSmall writes an integer below 1e8.
func writeSmall(w []byte, n int, m uint64) int {
	digits := eight(m)
	zeros := uint(bits.TrailingZeros64(digits|1<<56)) &^ 7 // 0 has one digit
	binary.LittleEndian.PutUint64(w[n:n+8], (digits|characters)>>zeros)
	return n + 8 - int(zeros/8)
}

// writeDigits writes m / 10^places, which is neither 0 nor an integer below
// 1e6, without trailing zeros. m has at most 16 digits.
func writeDigits(b []byte, n int, m uint64, places uint) int {
	w := b[n : n+slack-1]
	at := uint(0)

	// The digits, from the first that is not 0 on.
	high, low := eight(m/1e8), eight(m%1e8)
	if high == 0 {
		high, low = low, 0
		places += 8 // as many as were shifted
	}
	zeros := uint(bits.TrailingZeros64(high)) &^ 7
	exponent := 15 - int(zeros/8) - int(places)
	high, low = high>>zeros|low<<(63-zeros)<<1, low>>zeros
	digits := 8 - uint(bits.LeadingZeros64(high))/8
	if low != 0 {
		digits = 16 - uint(bits.LeadingZeros64(low))/8
	}
	high, low = high|characters, low|characters

	if exponent < 0 {
		// 0.000ddd
		binary.LittleEndian.PutUint64(w[at:at+8], characters&^0xff00|'.'<<8)
		at += uint(1 - exponent)
		binary.LittleEndian.PutUint64(w[at:at+8], high)
		binary.LittleEndian.PutUint64(w[at+8:at+16], low)
		return n + int(at+digits)
	}
	// dd.ddd or d.ddde+xx
	whole := uint(1)
	if exponent < 6 {
		whole += uint(exponent)
	}
	binary.LittleEndian.PutUint64(w[at:at+8], high)
	at += whole
	w[at] = '.'
	move := 8 * whole & 63
	binary.LittleEndian.PutUint64(w[at+1:at+9], high>>move|low<<(64-move))
	binary.LittleEndian.PutUint64(w[at+9:at+17], low>>move)
	if digits > whole {
		at += 1 + digits - whole
	}
	if exponent >= 6 {
		binary.LittleEndian.PutUint32(w[at:at+4], exponents[exponent&15])
		at += 4
	}
	return n + int(at)
}

// exponents are "e+00" to "e+15".
var exponents = func() (e [16]uint32) {
	for i := range e {
		e[i] = binary.LittleEndian.Uint32([]byte{'e', '+', byte('0' + i/10), byte('0' + i%10)})
	}
	return e
}()
