package history

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// A round is a list of changes: the distance from the series of the change before, with
// the kind of the change, and the new value.
const (
	gone        = iota // the series has no value any more
	thousandths        // the difference, in thousandths
	bits               // the value as 8 bytes
	kinds
)

// value is the latest value of a series.
type value struct {
	is    float64
	known bool
	round int // the latest round that has it, for the writer
}

// writer knows the values of the latest round of a segment.
type writer struct {
	values  []value
	devices map[string][]int // the series of a device, in the order of its readings
	round   int
}

// add appends the changes since the round before.
func (w *writer) add(to *segment, s *collector.Snapshot) {
	w.round++
	before := 0
	change := func(i int, is float64, known bool) {
		to.data = appendChange(to.data, i-before, &w.values[i], is, known)
		before = i
	}
	for n := range s.Devices {
		d := &s.Devices[n]
		place := 0
		for m := range d.Readings {
			r := &d.Readings[m]
			if r.Metric.Kind == collector.Info {
				continue
			}
			var i int
			i, place = w.find(to, d.ID, r, place)
			if v := &w.values[i]; !v.known || v.is != r.Value {
				change(i, r.Value, true)
			}
			w.values[i].round = w.round
		}
	}
	for i := range w.values {
		if v := &w.values[i]; v.known && v.round != w.round {
			change(i, 0, false)
		}
	}
}

// find returns the series of a reading, and the place of the next one: readings have the
// order of the round before, as a rule.
func (w *writer) find(in *segment, device string, r *collector.Reading, place int) (i, next int) {
	list := w.devices[device]
	for n := range list {
		at := (place + n) % len(list)
		if s := &in.series[list[at]]; s.metric == r.Metric && slices.Equal(s.labels, r.Labels) {
			return list[at], at + 1
		}
	}
	i = len(in.series)
	in.series = append(in.series, series{device, r.Metric, r.Labels})
	w.values = append(w.values, value{})
	w.devices[device] = append(list, i)
	return i, place
}

// inThousandths returns a value as a whole number of thousandths, if it is exactly one.
// Most values are: watts of milliwatts, ratios of percents, and whole numbers.
func inThousandths(v float64) (int64, bool) {
	m := math.Round(v * 1000)
	if math.Abs(m) >= 1<<53 || m/1000 != v {
		return 0, false
	}
	return int64(m), true
}

func appendChange(data []byte, distance int, v *value, is float64, known bool) []byte {
	was, _ := inThousandths(v.is)
	next, exact := inThousandths(is)
	kind := gone
	switch {
	case known && exact:
		kind = thousandths
	case known:
		kind = bits
	}
	data = binary.AppendVarint(data, int64(distance)*kinds+int64(kind))
	switch kind {
	case thousandths:
		data = binary.AppendVarint(data, next-was)
	case bits:
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(is))
	}
	v.is, v.known = is, known
	return data
}

// apply changes the values by the changes of one round.
func apply(values []value, data []byte) {
	for i := 0; len(data) > 0; {
		head, n := binary.Varint(data)
		data = data[n:]
		kind := int((head%kinds + kinds) % kinds)
		i += int(head-int64(kind)) / kinds
		v := &values[i]
		switch kind {
		case gone:
			*v = value{}
		case thousandths:
			was, _ := inThousandths(v.is)
			by, n := binary.Varint(data)
			data = data[n:]
			v.is, v.known = float64(was+by)/1000, true
		case bits:
			v.is, v.known = math.Float64frombits(binary.LittleEndian.Uint64(data)), true
			data = data[8:]
		}
	}
}
