package exporter

import (
	"math"
	"strconv"
)

// appendNumber appends v exactly as expfmt writes it, which is strconv's
// shortest 'g' form, and in OpenMetrics with ".0" where that form looks like
// an integer.
//
// Integers below 2^53 and decimals of at most 15 digits, which is nearly all
// that hardware reports, take a path several times as fast as strconv's. It
// gives the same digits: no two decimals of at most 15 digits are read back as
// the same float64, so a short decimal that is read back as v is the shortest.
func appendNumber(b []byte, v float64, openMetrics bool) []byte {
	a := math.Abs(v)
	if a < 1<<53 {
		if m := uint64(int64(a)); float64(int64(m)) == a {
			if v < 0 {
				b = append(b, '-')
			}
			if m >= 1e6 {
				return appendDigits(b, m, 0)
			}
			b = strconv.AppendUint(b, m, 10)
			if openMetrics {
				b = append(b, ".0"...)
			}
			return b
		}
	}
	if a >= 1e-4 && a < 1e12 {
		for _, s := range scales {
			scaled := a*s.by + 0.5
			if scaled >= 1e15 {
				break
			}
			if m := uint64(int64(scaled)); float64(int64(m))/s.by == a {
				if v < 0 {
					b = append(b, '-')
				}
				return appendDigits(b, m, s.places)
			}
		}
	}
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case v > math.MaxFloat64:
		return append(b, "+Inf"...)
	case v < -math.MaxFloat64:
		return append(b, "-Inf"...)
	}
	// Every integer below 1e6 was written above, so that what is left has a
	// point or an exponent.
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// scales are the numbers of decimal places that are tried: milli for watts
// and joules, micro and nano for durations.
var scales = [...]struct {
	by     float64
	places int
}{{1e3, 3}, {1e6, 6}, {1e9, 9}}

// appendDigits appends m / 10^places, which is neither 0 nor an integer below
// 1e6, without trailing zeros.
func appendDigits(b []byte, m uint64, places int) []byte {
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], m, 10)
	exponent := len(digits) - 1 - places
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	switch {
	case exponent >= 6:
		b = append(b, digits[0])
		if len(digits) > 1 {
			b = append(b, '.')
			b = append(b, digits[1:]...)
		}
		return append(b, 'e', '+', byte('0'+exponent/10), byte('0'+exponent%10))
	case exponent >= 0:
		b = append(b, digits[:exponent+1]...)
		b = append(b, '.')
		return append(b, digits[exponent+1:]...)
	}
	b = append(b, "0.000"[:1-exponent]...)
	return append(b, digits...)
}
