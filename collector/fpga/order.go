package fpga

import (
	"cmp"
	"strings"
)

// natural compares names by their numbers: dfl_dev.9 precedes dfl_dev.10.
func natural(a, b string) int {
	for a != "" && b != "" {
		da, ra := digits(a)
		db, rb := digits(b)
		if da != "" && db != "" {
			x, y := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = ra, rb
			continue
		}
		if c := cmp.Compare(a[0], b[0]); c != 0 {
			return c
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits splits the leading decimal digits from s.
func digits(s string) (number, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}
