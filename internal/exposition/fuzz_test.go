package exposition_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// oddRows are families unlike any family of the table.
var oddRows = []*collector.Metric{
	{Name: "a", Help: "", Kind: collector.Gauge},
	{Name: "accel_counter", Help: "A counter without suffix.", Kind: collector.Counter},
	{Name: "accel_quoted_total", Help: "Says \"hm\", \\n and\nmore. } ", Kind: collector.Counter, Labels: []string{"zone", "a"}},
	{Name: "zz:top", Help: "Ω", Kind: collector.Mark, Labels: []string{"quantile", "le"}},
	{Name: "_node", Help: "Of the node.", Kind: collector.Info, Scope: collector.PerNode, Labels: []string{"b", "a"}},
}

var oddValues = []string{
	"", " ", "x", `"`, `\`, "\n", `\n`, `a"b\c` + "\nd", "}", `",x="`, "\xff", "a\xc3(", "\xed\xa0\x80", "ΩÅ", "\U0001F525", "\x00", "\t",
}

// dice returns arbitrary snapshots.
type dice struct {
	*rand.Rand
	text string
	bits uint64
	// devices and readings are the largest numbers.
	devices, readings int
}

func (d dice) value() float64 {
	switch d.IntN(8) {
	case 0:
		return math.Float64frombits(d.bits)
	case 1:
		return math.Float64frombits(d.Uint64())
	case 2:
		return []float64{0, 1, -1, 1e6, 999999, 1e-5, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), math.MaxFloat64, 5e-324}[d.IntN(12)]
	case 3:
		return float64(d.Int64N(1e13)) / 1000
	case 4:
		return -float64(d.Int64N(1e9))
	}
	return float64(d.Int64N(1e7))
}

func (d dice) label() string {
	switch d.IntN(4) {
	case 0:
		return d.text
	case 1:
		return oddValues[d.IntN(len(oddValues))]
	case 2:
		return d.text + oddValues[d.IntN(len(oddValues))]
	}
	return uuid("GPU", d.Uint64N(9))
}

func (d dice) series(scope collector.Scope, n int) []collector.Reading {
	var out []collector.Reading
	table := append(rows(), oddRows...)
	for range n {
		m := table[d.IntN(len(table))]
		if m.Scope != scope {
			continue
		}
		r := collector.Reading{Metric: m, Value: d.value()}
		for range m.Labels {
			r.Labels = append(r.Labels, d.label())
		}
		out = append(out, r)
	}
	return out
}

func (d dice) device() collector.Device {
	v := collector.Device{ID: d.label(), Readings: d.series(collector.PerDevice, d.IntN(d.readings))}
	if d.IntN(2) == 0 {
		v.Parent = d.label()
	}
	return v
}

// step returns a successor of s: other values, and now and then a device or a
// reading more or less.
func (d dice) step(s *collector.Snapshot) *collector.Snapshot {
	n := &collector.Snapshot{Seq: s.Seq + 1}
	for _, v := range s.Devices {
		if d.IntN(12) == 0 {
			continue
		}
		v.Readings = d.change(v.Readings)
		n.Devices = append(n.Devices, v)
	}
	for d.IntN(6) == 0 {
		n.Devices = append(n.Devices, d.device())
	}
	n.Node = d.change(s.Node)
	sortDevices(n)
	return n
}

func (d dice) change(rs []collector.Reading) []collector.Reading {
	out := make([]collector.Reading, 0, len(rs))
	for _, r := range rs {
		if d.IntN(200) == 0 {
			continue
		}
		if d.IntN(3) > 0 {
			r.Value = d.value()
		}
		if d.IntN(100) == 0 {
			// The same labels in another slice, then perhaps others.
			r.Labels = append([]string(nil), r.Labels...)
			if len(r.Labels) > 0 && d.IntN(2) == 0 {
				r.Labels[0] = d.label()
			}
		}
		out = append(out, r)
	}
	return out
}

// checkLife compares pages with promhttp's over the life of a node.
func checkLife(t *testing.T, d dice, steps int, formats ...string) {
	s := &collector.Snapshot{}
	for range d.IntN(d.devices) {
		s.Devices = append(s.Devices, d.device())
	}
	s.Node = d.series(collector.PerNode, d.IntN(2*d.readings))
	sortDevices(s)

	own := ownRegistry()
	e := exposition.New(func() *collector.Snapshot { return s }, own, exposition.Options{})
	var dropped drops
	for range steps {
		n := newNaive(fixed(s))
		n.seen = make(map[string]bool)
		sink := make(chan prometheus.Metric)
		go func() { n.Collect(sink); close(sink) }()
		for range sink {
		}
		dropped.duplicate += float64(n.duplicates)
		want := usual(s, own, dropped)
		for _, accept := range formats {
			comparePages(t, want, e, "Accept", accept)
			comparePages(t, want, e, "Accept", accept, "Accept-Encoding", "gzip")
			comparePages(t, want, conventional(e), "Accept", accept)
		}
		if t.Failed() {
			return
		}
		s = d.step(s)
	}
}

func TestAnyLife(t *testing.T) {
	for seed := range uint64(4) {
		checkLife(t, dice{rand.New(rand.NewPCG(seed, 3)), "t\xe2\x82", 0x7ff0000000000001, 20, 40}, 6, text, openMetrics, protobuf)
	}
}

func FuzzPage(f *testing.F) {
	f.Add(uint64(1), "", uint64(0))
	f.Add(uint64(2), "\"}\n# EOF\n", math.Float64bits(1234567.5))
	f.Add(uint64(3), "\xff\xfe\\", uint64(1)<<63)
	f.Fuzz(func(t *testing.T, seed uint64, label string, bits uint64) {
		checkLife(t, dice{rand.New(rand.NewPCG(seed, 3)), label, bits, 4, 10}, 2, []string{text, openMetrics, protobuf}[seed%3])
	})
}
