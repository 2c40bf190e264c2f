package engine

import (
	"math"
	"slices"
	"sort"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

// ring is the memory of recent samples. All samples of one evaluation share a
// timestamp, a tick, so a series stores no times: it is a list of runs of
// equal values over ticks. A counter that rarely moves, the subject of rules
// over days, is exact in a few bytes.
type ring struct {
	limits Limits
	needs  needs
	// times are the times of the ticks from first on, in ms since the epoch.
	times []int64
	first uint32

	byName   map[string][]*series
	byLabels map[string]*series // by their encoding
	scratch  []byte             // an encoding
	bytes    int

	// lost is a metric with samples that a limit left out, and lostUntil until when
	// rules may miss them, in ms since the epoch.
	lost      string
	lostUntil int64
	hits      *prometheus.CounterVec // of each limit
}

// series is one series of the ring.
type series struct {
	labels labels.Labels
	// reach is how far back it is read, in ms.
	reach int64
	// recorded is a series that a rule wrote; it is kept even if no rule
	// reads it.
	recorded bool
	runs     []run
}

// run is a stretch of ticks, both ends included, at which a series had the
// same value.
type run struct {
	from, to uint32
	value    float64
}

const runBytes = 16

func newRing(l Limits, hits *prometheus.CounterVec) *ring {
	return &ring{limits: l, hits: hits, needs: needs{}, byName: map[string][]*series{}, byLabels: map[string]*series{}}
}

// now returns the latest tick. There must be one.
func (r *ring) now() uint32 { return r.first + uint32(len(r.times)) - 1 }

func (r *ring) time(tick uint32) int64 { return r.times[tick-r.first] }

// since returns the first tick at or after t, which may be the next one.
func (r *ring) since(t int64) uint32 {
	return r.first + uint32(sort.Search(len(r.times), func(i int) bool { return r.times[i] >= t }))
}

// get returns the series with labels l, which it creates if necessary. It
// returns nil for a series that no rule reads or records, and at the limit of
// series.
func (r *ring) get(l labels.Labels, recorded bool) *series {
	r.scratch = l.Bytes(r.scratch)
	if s := r.byLabels[string(r.scratch)]; s != nil {
		s.recorded = s.recorded || recorded
		return s
	}
	name := l.Get(model.MetricNameLabel)
	reach, read := r.needs.of(name)
	if !read && !recorded {
		return nil
	}
	if r.count() >= r.limits.Series {
		r.hits.WithLabelValues("series").Inc()
		r.lose(name, reach.Milliseconds())
		return nil
	}
	s := &series{labels: l, reach: reach.Milliseconds(), recorded: recorded}
	r.byLabels[string(r.scratch)] = s
	r.byName[name] = append(r.byName[name], s)
	return s
}

// count is the number of series.
func (r *ring) count() int { return len(r.byLabels) }

// lose records that the samples of a metric are incomplete for reach, in ms.
func (r *ring) lose(name string, reach int64) {
	if n := len(r.times); n > 0 {
		r.lost, r.lostUntil = name, max(r.lostUntil, r.times[n-1]+reach)
	}
}

// incomplete reports whether a limit left out samples that a rule may read now.
func (r *ring) incomplete() bool {
	n := len(r.times)
	return n > 0 && r.lostUntil >= r.times[n-1]
}

// has reports whether the series has a sample at the latest tick.
func (r *ring) has(s *series) bool {
	return len(s.runs) > 0 && s.runs[len(s.runs)-1].to == r.now()
}

// append adds a sample at the latest tick. It reports false if the series has
// another value there.
func (r *ring) append(s *series, v float64) bool {
	now := r.now()
	if n := len(s.runs); n > 0 {
		last := &s.runs[n-1]
		same := math.Float64bits(last.value) == math.Float64bits(v)
		switch {
		case last.to == now:
			return same
		case same && last.to+1 == now:
			last.to = now
			return true
		}
	}
	if n := len(s.runs); n == cap(s.runs) {
		// Doubling would waste memory: most series stay small.
		r.resize(s, n+1+n/4)
	}
	s.runs = append(s.runs, run{now, now, v})
	return true
}

var stale = math.Float64frombits(value.StaleNaN)

func isStale(v float64) bool { return math.Float64bits(v) == value.StaleNaN }

// end marks a series as stale, unless it has a sample at the latest tick.
func (r *ring) end(s *series) {
	if n := len(s.runs); n > 0 && !isStale(s.runs[n-1].value) && !r.has(s) {
		r.append(s, stale)
	}
}

// trim drops samples that no rule reads any more and enforces the limit of
// bytes.
func (r *ring) trim() {
	if len(r.times) == 0 {
		return
	}
	t := r.times[len(r.times)-1]
	oldest := r.now()
	r.keep(func(s *series) bool {
		if !r.trimSeries(s, t) {
			return false
		}
		oldest = min(oldest, s.runs[0].from)
		return true
	})
	// Unused ticks are dropped in bulk, so that copying is rare.
	if gone := int(oldest - r.first); gone > 64 && gone > len(r.times)/8 {
		r.times = append([]int64(nil), r.times[gone:]...)
		r.first = oldest
	}
	r.fit()
}

// trimSeries drops the runs that are too old and reports whether any are left.
func (r *ring) trimSeries(s *series, t int64) bool {
	from := r.since(t - s.reach)
	n := sort.Search(len(s.runs), func(i int) bool { return s.runs[i].to >= from })
	if n == len(s.runs) {
		return false
	}
	if n > 0 {
		s.runs = s.runs[:copy(s.runs, s.runs[n:])]
	}
	s.runs[0].from = max(s.runs[0].from, min(from, s.runs[0].to))
	if cap(s.runs) > 8 && cap(s.runs) > 2*len(s.runs) {
		r.resize(s, len(s.runs))
	}
	return true
}

// resize moves the runs of s to an array of capacity size.
func (r *ring) resize(s *series, size int) {
	r.bytes += (size - cap(s.runs)) * runBytes
	runs := make([]run, len(s.runs), size)
	copy(runs, s.runs)
	s.runs = runs
}

// forget removes the series from the index by labels.
func (r *ring) forget(s *series) {
	delete(r.byLabels, string(s.labels.Bytes(nil)))
	r.bytes -= cap(s.runs) * runBytes
	s.runs = nil
}

// apply replaces the needs and drops series that no rule reads any more.
func (r *ring) apply(ns needs) {
	r.needs = ns
	r.keep(func(s *series) bool {
		reach, read := ns.of(s.labels.Get(model.MetricNameLabel))
		if !read && !s.recorded {
			return false
		}
		s.reach = reach.Milliseconds()
		return true
	})
}

// keep removes the series for which want returns false.
func (r *ring) keep(want func(*series) bool) {
	for name, list := range r.byName {
		kept := slices.DeleteFunc(list, func(s *series) bool {
			if want(s) {
				return false
			}
			r.forget(s)
			return true
		})
		if r.byName[name] = kept; len(kept) == 0 {
			delete(r.byName, name)
		}
	}
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
		r.lose(s.labels.Get(model.MetricNameLabel), s.reach)
	}
}
