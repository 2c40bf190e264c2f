package engine

import (
	"context"
	"errors"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Querier implements storage.Queryable. The caller has locked the engine while
// it uses the result.
func (r *ring) Querier(_, _ int64) (storage.Querier, error) { return querier{r}, nil }

type querier struct{ ring *ring }

func (q querier) Select(_ context.Context, sorted bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{ring: q.ring, at: -1}
	add := func(list []*series) {
		for _, s := range list {
			if len(s.runs) > 0 && matches(s.labels, matchers) {
				set.series = append(set.series, s)
			}
		}
	}
	if name := nameOf(matchers); name != "" {
		add(q.ring.byName[name])
	} else {
		for _, list := range q.ring.byName {
			add(list)
		}
		sorted = true // a map has no order
	}
	if sorted {
		sort.Slice(set.series, func(i, j int) bool { return labels.Compare(set.series[i].labels, set.series[j].labels) < 0 })
	}
	return set
}

var errNoLabels = errors.New("rules: labels cannot be listed")

func (q querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoLabels
}

func (q querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoLabels
}

func (q querier) Close() error { return nil }

// seriesSet are the series that a selector found.
type seriesSet struct {
	ring   *ring
	series []*series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return seriesView{s.ring, s.series[s.at]} }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// seriesView is one series of the ring for the query engine.
type seriesView struct {
	ring   *ring
	series *series
}

func (v seriesView) Labels() labels.Labels { return v.series.labels }

func (v seriesView) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	mine, ok := it.(*iterator)
	if !ok {
		mine = new(iterator)
	}
	*mine = iterator{ring: v.ring, runs: v.series.runs, run: -1}
	return mine
}

// iterator iterates over the ticks of the runs of a series.
type iterator struct {
	ring *ring
	runs []run
	run  int // -1 before the first sample, len(runs) after the last
	tick uint32
}

var _ chunkenc.Iterator = (*iterator)(nil)

func (i *iterator) Next() chunkenc.ValueType {
	switch {
	case i.run >= len(i.runs):
		return chunkenc.ValNone
	case i.run >= 0 && i.tick < i.runs[i.run].to:
		i.tick++
		return chunkenc.ValFloat
	}
	if i.run++; i.run == len(i.runs) {
		return chunkenc.ValNone
	}
	i.tick = i.runs[i.run].from
	return chunkenc.ValFloat
}

// ms is a time in milliseconds since the epoch. With a separate type, go vet
// does not mistake Seek for io.Seeker's.
type ms = int64

func (i *iterator) Seek(t ms) chunkenc.ValueType {
	if i.run >= len(i.runs) {
		return chunkenc.ValNone
	}
	if i.run >= 0 && i.AtT() >= t {
		return chunkenc.ValFloat
	}
	from := i.ring.since(t)
	i.run = max(i.run, 0)
	i.run += sort.Search(len(i.runs)-i.run, func(n int) bool { return i.runs[i.run+n].to >= from })
	if i.run == len(i.runs) {
		return chunkenc.ValNone
	}
	i.tick = max(from, i.runs[i.run].from)
	return chunkenc.ValFloat
}

func (i *iterator) At() (int64, float64) { return i.AtT(), i.runs[i.run].value }
func (i *iterator) AtT() int64           { return i.ring.time(i.tick) }
func (i *iterator) AtST() int64          { return 0 }
func (i *iterator) Err() error           { return nil }

func (i *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("rules: the ring has floats only")
}

func (i *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	panic("rules: the ring has floats only")
}
