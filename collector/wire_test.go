package collector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// sameRound compares rounds. Metrics are compared by pointer.
var sameRound = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b *Metric) bool { return a == b }),
}

func randomReadings(rng *rand.Rand, n int) []Reading {
	var list []Reading
	for range n {
		m := table[rng.IntN(len(table))]
		labels := make([]string, len(m.Labels))
		for i := range labels {
			labels[i] = randomText(rng)
		}
		list = append(list, Reading{m, labels, m.Range.Min + rng.Float64()*(m.Range.Max-m.Range.Min)})
	}
	return list
}

func randomText(rng *rand.Rand) string {
	b := make([]byte, rng.IntN(12))
	for i := range b {
		b[i] = byte(rng.UintN(256))
	}
	return string(b)
}

func randomRound(rng *rand.Rand) Round {
	var r Round
	for range rng.IntN(5) {
		d := Device{
			ID: randomText(rng), Parent: randomText(rng), Class: Class(randomText(rng)), Vendor: randomText(rng),
			Model: randomText(rng), PCI: randomText(rng), Readings: randomReadings(rng, rng.IntN(20)),
		}
		for range rng.IntN(10) {
			d.KubeIDs = append(d.KubeIDs, randomText(rng))
		}
		if rng.IntN(2) == 0 {
			d.Clients = []Client{}
			for range rng.IntN(4) {
				d.Clients = append(d.Clients, Client{PID: int(rng.Int32()), Type: randomText(rng), Readings: randomReadings(rng, rng.IntN(3))})
			}
		}
		r.Devices = append(r.Devices, d)
	}
	r.Node = randomReadings(rng, rng.IntN(5))
	revalue(rng, &r)
	return r
}

// revalue changes the values of a round, not its series.
func revalue(rng *rand.Rand, r *Round) {
	r.Calls = nil
	for range rng.IntN(3) {
		r.Calls = append(r.Calls, CallError{randomText(rng), randomText(rng), rng.Uint64()})
	}
	r.Devices = slices.Clone(r.Devices)
	for i := range r.Devices {
		d := &r.Devices[i]
		d.Readings = slices.Clone(d.Readings)
		for i := range d.Readings {
			rg := d.Readings[i].Metric.Range
			d.Readings[i].Value = rg.Min + rng.Float64()*(rg.Max-rg.Min)
		}
		d.Clients = slices.Clone(d.Clients)
		for i := range d.Clients {
			c := &d.Clients[i]
			c.Readings = slices.Clone(c.Readings)
			for i := range c.Readings {
				rg := c.Readings[i].Metric.Range
				c.Readings[i].Value = rg.Min + rng.Float64()*(rg.Max-rg.Min)
			}
		}
		d.Down, d.Sampled, d.Rejects = "", time.Time{}, nil
		if rng.IntN(2) == 0 {
			d.Down, d.Sampled = randomText(rng), time.Unix(rng.Int64N(9e9), rng.Int64N(1e9))
			d.Rejects = []Reject{{table[rng.IntN(len(table))], randomText(rng)}}
		}
	}
}

// wire carries messages from one end of a worker's pipe to the other.
type wire struct {
	pipe bytes.Buffer
	w    *frameWriter
	r    *frameReader
	enc  roundEncoder
	dec  roundDecoder
}

func newWire() *wire {
	p := new(wire)
	p.w, p.r = newFrameWriter(&p.pipe), newFrameReader(&p.pipe)
	return p
}

func (p *wire) message(t *testing.T, m *message) *message {
	t.Helper()
	if err := p.w.write(m); err != nil {
		t.Fatal(err)
	}
	got := new(message)
	if err := p.r.read(got); err != nil {
		t.Fatal(err)
	}
	return got
}

func (p *wire) round(t *testing.T, r *Round, sent error) (Round, error) {
	t.Helper()
	m := p.message(t, &message{Round: p.enc.encode(7, r, sent)})
	got, why, err := p.dec.decode(m.Round)
	if err != nil || m.Round.Seq != 7 {
		t.Fatalf("round %d: %v", m.Round.Seq, err)
	}
	return got, why
}

// TestRoundTrip: decoding returns the encoded rounds, for any sequence of series.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := newWire()
		kinds := []Round{randomRound(rng), randomRound(rng), {}}
		type decoded struct{ got, want Round }
		var all []decoded
		for range 12 {
			r := kinds[rng.IntN(len(kinds))]
			revalue(rng, &r)
			var sent error
			if rng.IntN(3) == 0 {
				sent = fmt.Errorf("call: %w", ErrDriver)
			}
			got, why := p.round(t, &r, sent)
			if diff := cmp.Diff(r, got, sameRound); diff != "" {
				t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
			}
			for i := range r.Devices { // unknown processes differ from none
				if (r.Devices[i].Clients == nil) != (got.Devices[i].Clients == nil) {
					t.Errorf("seed %d: processes %v, want %v", seed, got.Devices[i].Clients, r.Devices[i].Clients)
				}
			}
			if (sent == nil) != (why == nil) || sent != nil && (why.Error() != sent.Error() || !errors.Is(why, ErrDriver)) {
				t.Errorf("seed %d: the error is %v, want %v", seed, why, sent)
			}
			all = append(all, decoded{got, r})
		}
		for i, d := range all { // later rounds do not change earlier ones
			if diff := cmp.Diff(d.want, d.got, sameRound); diff != "" {
				t.Fatalf("seed %d: round %d has changed (-want +got):\n%s", seed, i, diff)
			}
		}
	}
}

// TestDecodeRefuses: decode rejects rounds that an intact worker cannot send.
func TestDecodeRefuses(t *testing.T) {
	for name, change := range map[string]func(m *roundMessage){
		"no previous round":     func(m *roundMessage) { m.Series = nil },
		"no such metric":        func(m *roundMessage) { m.Series.Metrics[0] = len(table) },
		"negative metric":       func(m *roundMessage) { m.Series.Metrics[0] = -1 },
		"too few labels":        func(m *roundMessage) { m.Series.Labels = nil },
		"too many labels":       func(m *roundMessage) { m.Series.Labels = make([]string, 17) },
		"too few values":        func(m *roundMessage) { m.Values = nil },
		"out of range":          func(m *roundMessage) { m.Values[0] = 1e6 },
		"not a number":          func(m *roundMessage) { m.Values[0] = math.NaN() },
		"too many readings":     func(m *roundMessage) { m.Devices[0].Readings = 2 },
		"a device too few":      func(m *roundMessage) { m.Devices = nil },
		"a reject of no metric": func(m *roundMessage) { m.Round.Devices[0].Rejects = []Reject{{Metric: &Metric{index: 1 << 40}}} },
		"a broken client": func(m *roundMessage) {
			m.Round.Devices[0].Clients = []Client{{Readings: []Reading{{Metric: PowerWatts, Value: -1}}}}
		},
	} {
		r := gpus(1, 1)
		m := new(roundEncoder).encode(1, &r, nil)
		change(m)
		if r, _, err := new(roundDecoder).decode(m); err == nil {
			t.Errorf("%s: decoded as %+v", name, r)
		}
	}
}

// gpus is a round of n devices with k readings each.
func gpus(n, k int) Round {
	var r Round
	for i := range n {
		d := Device{ID: fmt.Sprintf("GPU-%d", i), Class: GPU, Vendor: "nvidia", Sampled: time.Unix(1e9, 0)}
		for j := range k {
			d.Set(TemperatureCelsius, float64(j%100), "sensor_"+fmt.Sprint(j))
		}
		r.Devices = append(r.Devices, d)
	}
	return r
}

func TestFrames(t *testing.T) {
	whole := frames(&request{1, 2}, &request{3, 4})
	r := newFrameReader(bytes.NewReader(whole))
	for _, want := range []request{{1, 2}, {3, 4}} {
		var got request
		if err := r.read(&got); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	if err := r.read(new(request)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	first := frames(&request{1, 2})
	for i := 1; i < len(first); i++ {
		if err := newFrameReader(bytes.NewReader(first[:i])).read(new(request)); err != io.ErrUnexpectedEOF {
			t.Errorf("%d bytes of %d: %v", i, len(first), err)
		}
	}
	for name, broken := range map[string][]byte{
		"no magic":      []byte("NVRM: loading"),
		"too long":      {'A', 'X', 0xff, 0xff, 0xff, 0xff},
		"empty":         {'A', 'X', 0, 0, 0, 0},
		"no gob":        {'A', 'X', 3, 0, 0, 0, 1, 2, 3},
		"trailing byte": append([]byte{'A', 'X', first[2] + 1}, append(first[3:len(first):len(first)], 0)...),
	} {
		if err := newFrameReader(bytes.NewReader(broken)).read(new(request)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := newFrameWriter(io.Discard).write(&message{Hello: &hello{Source: strings.Repeat("x", maxFrame)}}); err == nil {
		t.Error("wrote a frame larger than the limit")
	}
}

// allocated runs f and returns the bytes it allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzMessages: any input causes no panic and bounded allocations. A worker can
// send each accepted round.
func FuzzMessages(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 6 {
		r := gpus(n/2, n)
		var enc roundEncoder
		values := []any{greeting(0), &message{Event: &Event{Time: time.Unix(1e9, 7), Kind: EventXid}}, &message{Round: enc.encode(1, &r, ErrDriver)}}
		revalue(rng, &r)
		f.Add(frames(append(values, &message{Round: enc.encode(2, &r, nil)})...))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var rounds []Round
		n := allocated(func() {
			frames := newFrameReader(bytes.NewReader(in))
			var dec roundDecoder
			for {
				var m message
				if frames.read(&m) != nil {
					return
				}
				if m.Round == nil {
					continue
				}
				r, _, err := dec.decode(m.Round)
				if err != nil {
					return
				}
				rounds = append(rounds, r)
			}
		})
		// gob allocates up to 10 MiB for a length before it reads so many bytes.
		if limit := 16<<20 + 1024*uint64(len(in)); n > limit {
			t.Errorf("%d bytes allocated for %d", n, len(in))
		}
		for _, r := range rounds {
			lists := [][]Reading{r.Node}
			for _, d := range r.Devices {
				lists = append(lists, d.Readings)
			}
			for _, x := range slices.Concat(lists...) {
				if len(x.Labels) != len(x.Metric.Labels) || !x.Metric.Range.Contains(x.Value) {
					t.Errorf("%s%q is %v", x.Metric.Name, x.Labels, x.Value)
				}
			}
		}
	})
}

// TestSampleTimes: a sample of a worker is as old here as there, whatever happens to the
// clock, and a sample that is sent again keeps its time.
func TestSampleTimes(t *testing.T) {
	p := newWire()
	trip := func(sampled time.Time) time.Time {
		r := Round{Devices: []Device{{ID: "GPU-a", Sampled: sampled}}}
		got, _, err := p.dec.decode(p.message(t, &message{Round: p.enc.encode(1, &r, nil)}).Round)
		if err != nil {
			t.Fatal(err)
		}
		return got.Devices[0].Sampled
	}
	sampled := time.Now()
	got := trip(sampled)
	for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		now := golden.SetClock(time.Now(), by)
		if age := now.Sub(got); !got.Equal(sampled.Round(0)) || age < 0 || age > time.Hour || ClockSet(got, now).Round(time.Second) != by {
			t.Errorf("by %v: %v, of %v, is %v old", by, got, sampled, age)
		}
		// A sample from before the clock was set.
		if age := time.Since(trip(golden.SetClock(time.Now(), by))); age < 0 || age > time.Hour {
			t.Errorf("by %v: a sample from before is %v old", by, age)
		}
	}
	got = trip(sampled)
	if again := trip(sampled); again != got {
		t.Errorf("%v, then %v", got, again)
	}
}
