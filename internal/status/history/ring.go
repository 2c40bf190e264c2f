// Package history keeps the readings of the last ten minutes of every device, each
// second, in bounded memory. The status page and top draw their lines from it, and a
// bundle of evidence has all of it.
//
// A reader does not delay the Sampler, which adds a round: it works on a copy of the
// list of segments, whose content only grows.
package history

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// Length is how far back the readings reach, if they fit into Budget.
	Length = 10 * time.Minute
	// Budget bounds the memory of a Ring in bytes. The oldest minute is dropped where it
	// does not suffice.
	Budget = 4 << 20

	segmentLength = time.Minute
	segmentBytes  = Budget / 8
	// spacing is the shortest time between two rounds: they are a second apart, also
	// where devices are sampled more often or an event causes a Snapshot.
	spacing = 900 * time.Millisecond
	// seriesBytes is the memory of a series in a segment, with its labels.
	seriesBytes = 80
)

// Ring has the rounds of the last ten minutes. The zero value is empty and ready.
type Ring struct {
	mu       sync.Mutex
	segments []segment // the oldest first
	last     time.Time // of the latest round
	writer   writer    // of the last segment
}

// segment has the rounds of a minute. The first round has every value, each later
// round the values that have changed.
type segment struct {
	series []series
	rounds []round
	data   []byte
}

type series struct {
	device string
	metric *collector.Metric
	labels []string
}

type round struct {
	at  time.Time
	end int // of its changes in data
}

func (s *segment) bytes() int { return len(s.data) + len(s.series)*seriesBytes }

// Add adds a round of all devices. Families of kind Info are left out: they do not
// change, and a device has them at its end too.
func (r *Ring) Add(s *collector.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := s.Time.Sub(r.last); since >= 0 && since < spacing {
		return
	}
	r.last = s.Time
	if last := len(r.segments) - 1; last < 0 || s.Time.Sub(r.segments[last].rounds[0].at) >= segmentLength || len(r.segments[last].data) >= segmentBytes {
		if last >= 0 {
			r.segments[last].data = slices.Clone(r.segments[last].data) // without spare capacity
		}
		r.segments = append(r.segments, segment{})
		r.writer = writer{devices: map[string][]int{}}
	}
	now := &r.segments[len(r.segments)-1]
	r.writer.add(now, s)
	now.rounds = append(now.rounds, round{s.Time, len(now.data)})

	used := 0
	for i := len(r.segments) - 1; i >= 0; i-- {
		used += r.segments[i].bytes()
		latest := r.segments[i].rounds[len(r.segments[i].rounds)-1].at
		if used > Budget && i < len(r.segments)-1 || s.Time.Sub(latest) > Length {
			r.segments = slices.Clone(r.segments[i+1:])
			return
		}
	}
}

// Rounds returns every round, the oldest first: its time, and its devices with their
// readings. The readings are valid until the next device.
func (r *Ring) Rounds() iter.Seq2[time.Time, iter.Seq2[string, []collector.Reading]] {
	r.mu.Lock()
	segments := slices.Clone(r.segments)
	r.mu.Unlock()
	return func(yield func(time.Time, iter.Seq2[string, []collector.Reading]) bool) {
		for i := range segments {
			if !segments[i].replay(yield) {
				return
			}
		}
	}
}

// replay yields the rounds of a segment.
func (s *segment) replay(yield func(time.Time, iter.Seq2[string, []collector.Reading]) bool) bool {
	var order []string // of devices
	of := map[string][]int{}
	for i := range s.series {
		id := s.series[i].device
		if of[id] == nil {
			order = append(order, id)
		}
		of[id] = append(of[id], i)
	}
	values := make([]value, len(s.series))
	data, at := s.data, 0
	var readings []collector.Reading
	for _, r := range s.rounds {
		apply(values, data[at:r.end])
		at = r.end
		devices := func(yield func(string, []collector.Reading) bool) {
			for _, id := range order {
				readings = readings[:0]
				for _, i := range of[id] {
					if values[i].known {
						readings = append(readings, collector.Reading{Metric: s.series[i].metric, Labels: s.series[i].labels, Value: values[i].is})
					}
				}
				if len(readings) > 0 && !yield(id, readings) {
					return
				}
			}
		}
		if !yield(r.at, devices) {
			return false
		}
	}
	return true
}
