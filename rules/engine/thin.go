package engine

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// Limits of one series. The latest exactRuns are kept unchanged; before them
// each of the windows that divide the reach keeps four. Beyond maxRuns the
// oldest runs are dropped.
const (
	exactRuns = 256
	windows   = 200
	maxRuns   = 1536
)

// thin reduces a series that changes often and is read far back. Of each window
// it keeps the first, the last, the largest and the smallest run, so that
// increase and rate stay correct, also with one reset in a window, as do
// max_over_time and min_over_time. A dropped run lengthens the one before it,
// so that the number of samples, by which Prometheus extrapolates, stays.
func (r *ring) thin(s *series) {
	old := len(s.runs) - exactRuns
	width := max(1, s.reach/windows)
	kept := make([]run, 0, cap(s.runs))
	for from := 0; from < old; {
		to := from + 1
		until := r.time(max(s.runs[from].from, r.first)) + width
		for to < old && r.time(s.runs[to].to) <= until && s.runs[to].from == s.runs[to-1].to+1 && plain(s.runs[to].value) == plain(s.runs[from].value) {
			to++
		}
		kept = appendThinned(kept, s.runs[from:to])
		from = to
	}
	kept = append(kept, s.runs[old:]...)
	if most := maxRuns * 7 / 8; len(kept) > most {
		kept = slices.Delete(kept, 0, len(kept)-most)
		r.hits.WithLabelValues("history").Inc()
		r.lose(s.labels.Get(model.MetricNameLabel), time.Duration(s.reach)*time.Millisecond)
	}
	s.runs = append(s.runs[:0], kept...)
}

// plain reports whether v can be compared: it is neither NaN nor a staleness
// marker.
func plain(v float64) bool { return v == v }

// appendThinned appends the runs that are kept of one window.
func appendThinned(kept, window []run) []run {
	last := len(window) - 1
	low, high := 0, 0
	for i := range window {
		if window[i].value < window[low].value {
			low = i
		}
		if window[i].value > window[high].value {
			high = i
		}
	}
	for i, w := range window {
		if i == 0 || i == last || i == low || i == high {
			kept = append(kept, w)
		} else {
			kept[len(kept)-1].to = w.to
		}
	}
	return kept
}

// fit enforces the limit of bytes: the largest series lose the older half of
// their runs.
func (r *ring) fit() {
	if r.bytes <= r.limits.Bytes {
		return
	}
	var all []*series
	for _, list := range r.byName {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b *series) int { return cap(b.runs) - cap(a.runs) })
	for _, s := range all {
		if r.bytes <= r.limits.Bytes || len(s.runs) < 2 {
			return
		}
		s.runs = s.runs[:copy(s.runs, s.runs[len(s.runs)/2:])]
		r.resize(s, len(s.runs))
		r.hits.WithLabelValues("bytes").Inc()
		r.lose(s.labels.Get(model.MetricNameLabel), time.Duration(s.reach)*time.Millisecond)
	}
}
