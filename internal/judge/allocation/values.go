package allocation

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// quantity is a measured value, or an unknown one.
type quantity struct {
	value float64
	known bool
}

func measured(v float64) quantity { return quantity{v, true} }

// pointer returns the value as a Report has it: nil if unknown.
func (q quantity) pointer() *float64 {
	if !q.known {
		return nil
	}
	return new(q.value)
}

// sum is over the n devices whose value is known.
type sum struct {
	value float64
	n     int
}

func (s *sum) add(q quantity) {
	if q.known {
		s.value += q.value
		s.n++
	}
}

// of returns the sum as the value of n processes, unknown if the value of one
// of them is.
func (s *sum) of(n int) quantity { return quantity{s.value, s.n == n} }

func first(r *collector.Reading) string {
	if len(r.Labels) == 0 {
		return ""
	}
	return r.Labels[0]
}

// Bounds of labels.
const (
	maxLabel  = 512 // bytes, as in podmap
	maxListed = 8   // containers or resources
)

func list(names []string) string {
	if len(names) > maxListed {
		names = append(slices.Clone(names[:maxListed]), "…")
	}
	return text(strings.Join(names, ","))
}

func text(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "")
}

// add adds the missing names to a sorted list.
func add(list []string, more ...string) []string {
	for _, s := range more {
		if at, ok := slices.BinarySearch(list, s); !ok {
			list = slices.Insert(list, at, s)
		}
	}
	return list
}

// age is the time from t to now, in seconds.
func age(t, now time.Time) float64 { return max(0, now.Sub(t).Seconds()) }

// stamp returns a time in seconds since 1970, by the clock of now.
func stamp(t, now time.Time) float64 {
	return float64(collector.OnClock(t, now).UnixMilli()) / 1000
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// latest returns the last of some times.
func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// pairs returns label slices of one label each, to be shared by all Snapshots.
func pairs[T ~string](values []T) [][]string {
	out := make([][]string, len(values))
	for i, v := range values {
		out[i] = []string{string(v)}
	}
	return out
}
