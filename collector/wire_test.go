package collector

import (
	"bytes"
	"context"
	"encoding/binary"
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
)

// sameRound compares rounds; of metrics, the pointer counts.
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
		if rng.IntN(2) == 0 {
			d.Accounts = []Account{}
			for range rng.IntN(4) {
				d.Accounts = append(d.Accounts, randomAccount(rng))
			}
		}
		r.Devices = append(r.Devices, d)
	}
	r.Node = randomReadings(rng, rng.IntN(5))
	revalue(rng, &r)
	return r
}

func randomAccount(rng *rand.Rand) Account {
	account := Account{PID: int(rng.Int32()), Started: time.Unix(0, rng.Int64())}
	if rng.IntN(2) == 0 {
		account.Ended = time.Unix(0, rng.Int64())
	}
	if rng.IntN(2) == 0 {
		account.MemoryPeak, account.Memory = new(float64(rng.Int64N(1<<50))), new(rng.Float64())
	}
	if rng.IntN(2) == 0 {
		account.Compute = new(rng.Float64())
	}
	return account
}

// revalue gives a round new values in the same shape.
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

// What is encoded is decoded, whatever the sequence of shapes.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var enc roundEncoder
		var dec roundDecoder
		shapes := []Round{randomRound(rng), randomRound(rng), {}}
		type decoded struct{ got, want Round }
		var all []decoded
		for seq := range uint64(12) {
			r := shapes[rng.IntN(len(shapes))]
			revalue(rng, &r)
			var why error
			if rng.IntN(3) == 0 {
				why = fmt.Errorf("call: %w", ErrDriver)
			}
			b := enc.encode(nil, seq, &r, why)
			gotSeq, got, gotWhy, err := dec.decode(b)
			if err != nil || gotSeq != seq {
				t.Fatalf("seed %d: decode: seq %d of %d, %v", seed, gotSeq, seq, err)
			}
			if diff := cmp.Diff(r, got, sameRound); diff != "" {
				t.Fatalf("seed %d, round %d (-want +got):\n%s", seed, seq, diff)
			}
			if (why == nil) != (gotWhy == nil) || why != nil && (gotWhy.Error() != why.Error() || !errors.Is(gotWhy, ErrDriver)) {
				t.Errorf("seed %d: the error is %v, want %v", seed, gotWhy, why)
			}
			for cut := range b[:min(len(b), 300)] {
				broken := roundDecoder{known: dec.known, devices: dec.devices, node: dec.node, readings: dec.readings}
				if _, _, _, err := broken.decode(b[:cut]); err == nil {
					t.Fatalf("seed %d: %d bytes of %d pass for a round", seed, cut, len(b))
				}
			}
			all = append(all, decoded{got, r})
		}
		for i, d := range all { // what comes later changes nothing of it
			if diff := cmp.Diff(d.want, d.got, sameRound); diff != "" {
				t.Fatalf("seed %d: round %d has changed (-want +got):\n%s", seed, i, diff)
			}
		}
	}
}

// A steady round is little more than its numbers; whatever changes the shape
// has it sent once more.
func TestRoundShapeIsSentOnce(t *testing.T) {
	base := gpus(8, 80)
	change := map[string]func(r *Round){
		"values":          func(r *Round) { r.Devices[0].Readings[0].Value = 2 },
		"labels":          func(r *Round) { r.Devices[0].Readings[0].Labels = []string{"memory"} },
		"equal labels":    func(r *Round) { r.Devices[0].Readings[0].Labels = slices.Clone(r.Devices[0].Readings[0].Labels) },
		"metric":          func(r *Round) { r.Devices[0].Readings[0].Metric = UtilizationRatio },
		"reading gone":    func(r *Round) { r.Devices[0].Readings = r.Devices[0].Readings[1:] },
		"device gone":     func(r *Round) { r.Devices = r.Devices[1:] },
		"devices swapped": func(r *Round) { r.Devices[0], r.Devices[1] = r.Devices[1], r.Devices[0] },
		"model":           func(r *Round) { r.Devices[0].Model = "H200" },
		"kubernetes id":   func(r *Round) { r.Devices[0].KubeIDs = []string{"x"} },
		"a client":        func(r *Round) { r.Devices[0].Clients = []Client{{PID: 42, Type: "compute"}} },
		"somebody looked": func(r *Round) { r.Devices[0].Clients = []Client{} },
		"node":            func(r *Round) { r.Node = []Reading{{SourceUp, []string{"a", ""}, 1}} },
		"down":            func(r *Round) { r.Devices[0].Down = ReasonLost },
		"nothing":         func(*Round) {},
	}
	steady := []string{"nothing", "values", "down", "equal labels"}
	for name, f := range change {
		var enc roundEncoder
		first := len(enc.encode(nil, 1, &base, nil))
		r := clone(base)
		f(&r)
		second, third := len(enc.encode(nil, 2, &r, nil)), len(enc.encode(nil, 3, &r, nil))
		values := 8 * 8 * 80
		if sent := second > values+1000; sent == slices.Contains(steady, name) {
			t.Errorf("%s: the round takes %d bytes, after %d", name, second, first)
		}
		if third > values+1000 {
			t.Errorf("%s: the round after it takes %d bytes", name, third)
		}
	}
}

// The errors of a Source keep what they say and what they are.
func TestRemoteErrors(t *testing.T) {
	all := []error{ErrAbsent, ErrReleased, ErrCrashed, ErrProtocol, ErrMismatch, ErrRestart, ErrDriver, context.DeadlineExceeded, io.EOF, errors.New("x")}
	for _, sent := range all {
		var enc roundEncoder
		var dec roundDecoder
		sent = fmt.Errorf("nvmlInit: %w", sent)
		_, _, got, err := dec.decode(enc.encode(nil, 1, &Round{}, sent))
		if err != nil || got.Error() != sent.Error() || reason(got) != reason(sent) {
			t.Errorf("%q arrives as %q with reason %q, %v", sent, got, reason(got), err)
		}
		for _, target := range all {
			// An error of no sentinel is no longer itself; never is one another.
			want := errors.Is(sent, target) && reason(target) != SourceError
			if errors.Is(got, target) != want {
				t.Errorf("%q: Is(%v) is %v", sent, target, !want)
			}
		}
	}
	var enc roundEncoder
	var dec roundDecoder
	_, _, got, err := dec.decode(enc.encode(nil, 1, &Round{}, errors.New(strings.Repeat("x", 1e6))))
	if err != nil || len(got.Error()) != maxString {
		t.Errorf("a long error arrives with %d bytes, %v", len(got.Error()), err)
	}
}

// What no intact worker sends is refused.
func TestDecodeRefuses(t *testing.T) {
	steady := gpus(1, 1)
	for name, payload := range map[string][]byte{
		"nothing":                 {},
		"values without a shape":  {1, 0, 0},
		"flag":                    {1, 2, 1, 0, 0},
		"many devices":            binary.AppendUvarint([]byte{1, 0, 1}, maxDevices+1),
		"more than the bytes":     binary.AppendUvarint([]byte{1, 0, 1}, maxDevices),
		"no such metric":          encoded(func(r *Round) { r.Devices[0].Readings[0].Metric = &Metric{index: len(table)} }),
		"overflowing metric":      encoded(func(r *Round) { r.Devices[0].Readings[0].Metric = &Metric{index: -1} }),
		"too few labels":          encoded(func(r *Round) { r.Devices[0].Readings[0].Labels = nil }),
		"too many labels":         encoded(func(r *Round) { r.Devices[0].Readings[0].Labels = make([]string, 17) }),
		"out of range":            encoded(func(r *Round) { r.Devices[0].Readings[0].Value = 1e6 }),
		"not a number":            encoded(func(r *Round) { r.Devices[0].Readings[0].Value = math.NaN() }),
		"bytes left over":         append(encoded(func(*Round) {}), 0),
		"an endless number":       bytes.Repeat([]byte{0xff}, 100),
		"a reject of no metric":   encoded(func(r *Round) { r.Devices[0].Rejects = []Reject{{&Metric{index: 1 << 40}, ""}} }),
		"far too many accounts":   encoded(func(r *Round) { r.Devices[0].Accounts = make([]Account, maxClients+1) }),
		"an account out of range": encoded(func(r *Round) { r.Devices[0].Accounts = []Account{{PID: 1, Compute: new(1.5)}} }),
		"far too many clients":    encoded(func(r *Round) { r.Devices[0].Clients = make([]Client, maxClients+1) }),
		"far too many kube ids":   encoded(func(r *Round) { r.Devices[0].KubeIDs = make([]string, maxKubeIDs+1) }),
		"a steady round of other": (&roundEncoder{sent: true, devices: []deviceShape{{device: Device{ID: "GPU-0", Class: GPU, Vendor: "nvidia"}, series: seriesOf(steady.Devices[0].Readings)}}}).encode(nil, 1, &steady, nil),
	} {
		var dec roundDecoder
		if _, r, _, err := dec.decode(payload); err == nil {
			t.Errorf("%s: passes as %+v", name, r)
		}
	}
}

func encoded(f func(*Round)) []byte {
	r := gpus(1, 1)
	f(&r)
	var enc roundEncoder
	return enc.encode(nil, 1, &r, nil)
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

func TestEventTrip(t *testing.T) {
	for _, e := range []Event{
		{},
		{Time: time.Unix(1e9, 7), Device: "GPU-a", Partition: "MIG-b", Kind: EventXid, Code: 1<<64 - 1},
	} {
		b := encodeEvent(nil, e)
		got, err := decodeEvent(b)
		if diff := cmp.Diff(e, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for cut := range b {
			if _, err := decodeEvent(b[:cut]); err == nil {
				t.Errorf("%d bytes of %d pass for an event", cut, len(b))
			}
		}
		if _, err := decodeEvent(append(b, 0)); err == nil {
			t.Error("an event with a byte left over passes")
		}
	}
}

func TestReadFrame(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 50_000)
	stream := slices.Concat(frame(frameHello, []byte("x")), frame(frameRound, long), frame(frameEvent, nil), frame(frameEvent, []byte("y")))
	r := bytes.NewReader(stream)
	var buf []byte
	for _, want := range [][]byte{[]byte("x"), long, {}, []byte("y")} {
		_, got, err := ReadFrame(r, buf)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
		}
		buf = got
	}
	if _, _, err := ReadFrame(r, buf); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	whole := frame(frameRound, []byte("payload"))
	for i := range whole {
		if _, _, err := ReadFrame(bytes.NewReader(whole[:i]), nil); i > 0 && err != io.ErrUnexpectedEOF {
			t.Errorf("%d bytes of %d: %v", i, len(whole), err)
		}
		bad := slices.Clone(whole)
		bad[i] ^= 0x10
		if kind, _, err := ReadFrame(bytes.NewReader(bad), nil); err == nil && kind == frameRound && i != 3 {
			t.Errorf("byte %d may be wrong", i)
		}
	}
	if err := WriteFrame(io.Discard, frameRound, make([]byte, FrameHeader+MaxFrame+1)); err == nil {
		t.Error("a frame over the limit is written")
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

// bound is what decoding n bytes may allocate: the parent's memory is limited,
// and a worker whose memory is corrupt may send anything.
func bound(n int) uint64 { return 256<<10 + 256*uint64(n) }

func FuzzReadFrame(f *testing.F) {
	f.Add(hello(fingerprint()))
	f.Add(slices.Concat(frame(frameRound, encoded(func(*Round) {})), frame(frameEvent, nil)))
	f.Add([]byte{'A', 'X', 3, 0, 0, 0, 0, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		n := allocated(func() {
			r := bytes.NewReader(in)
			var buf []byte
			for {
				kind, payload, err := ReadFrame(r, buf)
				if err != nil {
					break
				}
				buf = payload
				if again := frame(kind, slices.Clone(payload)); !bytes.HasSuffix(in[:len(in)-r.Len()], again[4:]) {
					t.Fatal("a frame differs from its bytes")
				}
			}
		})
		if n > bound(len(in)) {
			t.Errorf("%d bytes allocated for %d", n, len(in))
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add(encodeEvent(nil, Event{Time: time.Unix(1e9, 7), Device: "GPU-a", Partition: "MIG-b", Kind: EventXid, Code: 79}))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := decodeEvent(in)
		if err != nil {
			return
		}
		again, err := decodeEvent(encodeEvent(nil, e))
		if diff := cmp.Diff(e, again); diff != "" || err != nil {
			t.Errorf("an event is another the second time: %v\n%s", err, diff)
		}
	})
}

// Any two payloads one after the other: no panic, no memory out of proportion,
// and what passes for a round is one that could have been sent.
func FuzzDecodeRound(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 6 {
		var enc roundEncoder
		r := gpus(n/2, n)
		first := enc.encode(nil, 1, &r, ErrDriver)
		revalue(rng, &r)
		f.Add(first, enc.encode(nil, 2, &r, nil))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var dec roundDecoder
		for _, in := range [][]byte{first, second} {
			var r Round
			var why, err error
			n := allocated(func() { _, r, why, err = dec.decode(in) })
			if n > bound(len(first)+len(second)) {
				t.Errorf("%d bytes allocated for %d", n, len(in))
			}
			if err != nil {
				return
			}
			for _, list := range append([][]Reading{r.Node}, readings(r)...) {
				for _, x := range list {
					if len(x.Labels) != len(x.Metric.Labels) || !x.Metric.Range.Contains(x.Value) {
						t.Errorf("%s%q is %v", x.Metric.Name, x.Labels, x.Value)
					}
				}
			}
			var enc roundEncoder
			var fresh roundDecoder
			_, again, _, err := fresh.decode(enc.encode(nil, 1, &r, why))
			if diff := cmp.Diff(r, again, sameRound); diff != "" || err != nil {
				t.Errorf("a round is another the second time: %v\n%s", err, diff)
			}
		}
	})
}

func readings(r Round) (lists [][]Reading) {
	for _, d := range r.Devices {
		lists = append(lists, d.Readings)
	}
	return lists
}
