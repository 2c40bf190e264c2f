// Package wording has what error messages share.
package wording

import "strconv"

// Quote returns s quoted, and cut where it is long.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		if r := []rune(s); len(r) > most {
			return strconv.Quote(string(r[:most])) + "…"
		}
	}
	return strconv.Quote(s)
}

// Nearest returns up to n of the names that resemble s, the closest first.
func Nearest(s string, names []string, n int) []string {
	most := max(2, len(s)/3)
	byDistance := make([][]string, most+1)
	for _, name := range names {
		if d := Distance(s, name); d <= most {
			byDistance[d] = append(byDistance[d], name)
		}
	}
	var found []string
	for _, group := range byDistance {
		found = append(found, group...)
	}
	return found[:min(n, len(found))]
}

// Distance is the Levenshtein distance of a and b in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
