package baseline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// Layout is how a GPU is partitioned: disabled, empty (MIG mode without an
// instance), or the MIG devices by profile, as in "1x3g.40gb 2x2g.20gb".
type Layout string

// The layouts without an instance.
const (
	layoutDisabled Layout = "disabled"
	layoutEmpty    Layout = "empty"
)

// maxProfiles bounds the profiles of a layout: a GPU has at most seven
// instances.
const maxProfiles = 16

var profileCount = lazily(`^([1-9][0-9]?)x([0-9a-z][0-9a-z.+-]{0,39})$`)

// UnmarshalText accepts a layout with the profiles in any order.
func (l *Layout) UnmarshalText(b []byte) error {
	text := string(b)
	if *l = Layout(text); *l == layoutDisabled || *l == layoutEmpty {
		return nil
	}
	counts := map[string]int{}
	for part := range strings.FieldsSeq(text) {
		m := profileCount().FindStringSubmatch(part)
		if m == nil || counts[m[2]] > 0 {
			counts = nil
			break
		}
		counts[m[2]], _ = strconv.Atoi(m[1])
	}
	if len(counts) == 0 || len(counts) > maxProfiles {
		return fmt.Errorf("found %s; accepted is disabled, empty, or each profile once with its count, such as \"1x3g.40gb 2x2g.20gb\"", wording.Quote(text))
	}
	*l = layoutOf(counts)
	return nil
}

// layoutOf returns the counts of MIG devices by profile in a fixed order.
func layoutOf(counts map[string]int) Layout {
	parts := make([]string, 0, len(counts))
	for profile, n := range counts {
		parts = append(parts, strconv.Itoa(n)+"x"+profile)
	}
	slices.SortFunc(parts, func(a, b string) int {
		_, pa, _ := strings.Cut(a, "x")
		_, pb, _ := strings.Cut(b, "x")
		return strings.Compare(pa, pb)
	})
	return Layout(strings.Join(parts, " "))
}
