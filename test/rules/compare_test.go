package differential

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// number writes a value with twelve digits: the order in which series are added
// up is not the same on both sides, and the last bits follow it.
func number(v float64) string {
	if math.Abs(v) < 1e-9 {
		v = 0 // what is left of a sum that is 0
	}
	return strconv.FormatFloat(v, 'g', 12, 64)
}

func pairs(m map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%q ", name, failed(m[name]))
	}
	return "{" + strings.TrimSuffix(b.String(), " ") + "}"
}

// failed leaves the reason out of a text that a template failed to make: ours
// is shorter.
func failed(text string) string {
	const mark = "<error expanding template: "
	if strings.HasPrefix(text, mark) {
		return mark
	}
	return text
}

// clock writes a time; the zero one is none.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// notice is one alert as it is handed on.
func notice(labels, annotations map[string]string, starts, ends time.Time) string {
	return fmt.Sprintf("%s %s from %s to %s", pairs(labels), pairs(annotations), clock(starts), clock(ends))
}

func alertText(labels, annotations map[string]string, state string, value float64, active, fired, resolved, kept, sent, valid time.Time) string {
	return fmt.Sprintf("%s %s %s %s active %s fired %s resolved %s kept %s sent %s valid %s", pairs(labels), pairs(annotations),
		state, number(value), clock(active), clock(fired), clock(resolved), clock(kept), clock(sent), clock(valid))
}

// difference returns the lines that only one side has, as often as it does.
func difference(ours, theirs []string) []string {
	slices.Sort(ours)
	slices.Sort(theirs)
	if slices.Equal(ours, theirs) {
		return nil
	}
	count := map[string]int{}
	for _, s := range ours {
		count[s]++
	}
	for _, s := range theirs {
		count[s]--
	}
	var all []string
	for _, s := range slices.Sorted(maps.Keys(count)) {
		switch n := count[s]; {
		case n > 0:
			all = append(all, "only ours has "+s)
		case n < 0:
			all = append(all, "only Prometheus has "+s)
		}
	}
	return all
}
