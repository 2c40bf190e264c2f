// Package history keeps the readings of the last ten minutes of every device, each
// second, in bounded memory. The status page and top draw their lines from it, and a
// bundle of evidence has all of it.
package history

import (
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// Length is how far back the readings reach at least, if they fit into Budget.
	Length = 10 * time.Minute
	// Budget bounds the memory of a Ring in bytes for up to eight devices. It grows with each
	// further device, up to maxBudget. Where it does not suffice, the older half of the
	// rounds is dropped.
	Budget    = 4 << 20
	maxBudget = 32 << 20

	// spacing is the shortest time between two rounds: they are a second apart, also
	// where devices are sampled more often or an event causes a Snapshot.
	spacing = 900 * time.Millisecond
	// trimming is how often rounds older than Length are dropped.
	trimming = time.Minute

	sampleBytes = 20 // of 16, with spare capacity
	seriesBytes = 200
)

// Ring has the rounds of the last ten minutes. The zero value is empty and ready.
type Ring struct {
	mu      sync.Mutex
	rounds  []time.Time // the oldest first
	first   int         // number of the oldest round
	series  []*series   // in the order of their first round
	devices map[string][]*series
	bytes   int
	trimmed time.Time
}

// series has a sample for each change: most readings stay for minutes.
type series struct {
	device  string
	metric  *collector.Metric
	labels  []string
	samples []sample
	latest  time.Time // round that has it
}

type sample struct {
	round int // its number: a clock may be set
	value float64
}

// absent is the value of a series that was not measured. It is not equal to itself.
var absent = math.NaN()

// Add adds a round of all devices. Families of kind Info are left out: they do not
// change, and a device has them at its end too.
func (r *Ring) Add(s *collector.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.rounds) - 1; last >= 0 {
		if since := s.Time.Sub(r.rounds[last]); since >= 0 && since < spacing {
			return
		}
	}
	r.rounds = append(r.rounds, s.Time)
	for i := range s.Devices {
		d := &s.Devices[i]
		place := 0
		for n := range d.Readings {
			if v := &d.Readings[n]; v.Metric.Kind != collector.Info {
				of := r.find(d.ID, v, &place)
				of.latest = s.Time
				r.put(of, v.Value)
			}
		}
	}
	for _, of := range r.series {
		if !of.latest.Equal(s.Time) {
			r.put(of, absent)
		}
	}
	if s.Time.Sub(r.trimmed) >= trimming {
		r.trim(s.Time.Add(-Length))
		r.trimmed = s.Time
	}
	budget := min(max(Budget, len(s.Devices)*Budget/8), maxBudget)
	for r.bytes > budget && len(r.rounds) > 1 {
		r.trim(r.rounds[len(r.rounds)/2])
	}
}

// find returns the series of a reading. place is where it is expected, as a rule in the
// order of the round before.
func (r *Ring) find(device string, v *collector.Reading, place *int) *series {
	list := r.devices[device]
	for n := range list {
		at := (*place + n) % len(list)
		if of := list[at]; of.metric == v.Metric && slices.Equal(of.labels, v.Labels) {
			*place = at + 1
			return of
		}
	}
	of := &series{device: device, metric: v.Metric, labels: v.Labels}
	if r.devices == nil {
		r.devices = map[string][]*series{}
	}
	r.devices[device] = append(list, of)
	r.series = append(r.series, of)
	r.bytes += seriesBytes
	return of
}

// put adds the value of the latest round to a series, if it has changed.
func (r *Ring) put(of *series, value float64) {
	last := absent
	if n := len(of.samples); n > 0 {
		last = of.samples[n-1].value
	}
	if value == last || math.IsNaN(value) && math.IsNaN(last) {
		return
	}
	of.samples = append(of.samples, sample{r.first + len(r.rounds) - 1, value})
	r.bytes += sampleBytes
}

// trim drops the rounds before a time. What a reader has of them stays as it is.
func (r *Ring) trim(oldest time.Time) {
	drop := max(slices.IndexFunc(r.rounds, func(at time.Time) bool { return !at.Before(oldest) }), 0)
	r.rounds = slices.Clone(r.rounds[drop:])
	r.first += drop
	kept := make([]*series, 0, len(r.series))
	r.devices, r.bytes = map[string][]*series{}, 0
	for _, of := range r.series {
		of.samples = slices.Clone(of.samples[max(of.at(r.first), 0):])
		if len(of.samples) == 1 && math.IsNaN(of.samples[0].value) {
			continue
		}
		kept = append(kept, of)
		r.devices[of.device] = append(r.devices[of.device], of)
		r.bytes += seriesBytes + len(of.samples)*sampleBytes
	}
	r.series = kept
}

// at returns the index of the sample that is valid in a round, -1 before the first one.
func (s *series) at(round int) int {
	n, found := slices.BinarySearchFunc(s.samples, round, func(s sample, round int) int { return s.round - round })
	if found {
		return n
	}
	return n - 1
}

// Rounds returns every round, the oldest first: its time, and its devices with their
// readings, or the one device only. The readings are valid until the next device.
func (r *Ring) Rounds(only ...string) iter.Seq2[time.Time, iter.Seq2[string, []collector.Reading]] {
	r.mu.Lock()
	rounds, first, devices := r.rounds, r.first, make([][]series, 0, len(r.devices))
	placed := map[string]int{}
	for _, of := range r.series {
		if len(only) > 0 && !slices.Contains(only, of.device) {
			continue
		}
		n, known := placed[of.device]
		if !known {
			n = len(devices)
			placed[of.device] = n
			devices = append(devices, nil)
		}
		devices[n] = append(devices[n], *of)
	}
	r.mu.Unlock()
	var readings []collector.Reading
	return func(yield func(time.Time, iter.Seq2[string, []collector.Reading]) bool) {
		for i, at := range rounds {
			if !yield(at, func(yield func(string, []collector.Reading) bool) {
				for _, list := range devices {
					readings = readings[:0]
					for k := range list {
						of := &list[k]
						if n := of.at(first + i); n >= 0 && !math.IsNaN(of.samples[n].value) {
							readings = append(readings, collector.Reading{Metric: of.metric, Labels: of.labels, Value: of.samples[n].value})
						}
					}
					if len(readings) > 0 && !yield(list[0].device, readings) {
						return
					}
				}
			}) {
				return
			}
		}
	}
}
