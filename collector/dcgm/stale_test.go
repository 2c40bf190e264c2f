//go:build linux && cgo

package dcgm

import (
	"testing"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// gpuRecord is a temperature that the host engine read at a time.
func gpuRecord(at time.Time, celsius uint8) *record {
	r := &record{group: uint32(gpus), field: 150, kind: typeInt64, ts: at.UnixMicro()}
	r.value[0] = celsius
	return r
}

// oneGPU is an engine with one GPU, which no library reads.
func oneGPU() (*engine, *device) {
	d := newDevice(entity{gpus, 0})
	d.identity.ID = "GPU-a"
	e := &engine{lib: &library{}, options: &Options{Alone: true}, devices: map[entity]*device{d.entity: d}, taken: map[place]bool{}, calls: tally{}}
	e.options.defaults()
	return e, d
}

// TestFrozenValues: where the driver hangs under the host engine, its last values are
// not shown, and the device does not answer from then on.
func TestFrozenValues(t *testing.T) {
	e, d := oneGPU()
	start := time.Now().Truncate(time.Microsecond)
	for _, c := range []struct {
		after, read time.Duration
		down        string
		readings    int
	}{
		{0, 0, "", 1},
		{5 * time.Second, 0, "", 1},
		{8 * time.Second, 0, collector.ReasonStuck, 0},
		{21 * time.Second, 21 * time.Second, "", 1},
	} {
		now := start.Add(c.after)
		d.answered = now // the host engine reports a status of OK throughout
		clear(e.taken)
		d.begin()
		e.take(gpuRecord(start.Add(c.read), 60), now)
		got := e.round(now).Devices[0]
		if got.Down != c.down || len(got.Readings) != c.readings || !got.Sampled.Equal(start.Add(c.read)) {
			t.Errorf("after %v: down %q, %d readings, sampled %v", c.after, got.Down, len(got.Readings), got.Sampled.Sub(start))
		}
	}
}

// TestFellOffTheBus: after Xid 79 the host engine keeps the last values and a status of
// OK. The GPU is lost at once, until a value is read again.
func TestFellOffTheBus(t *testing.T) {
	e, d := oneGPU()
	e.emit = func(collector.Event) {}
	start := time.Now().Truncate(time.Microsecond)
	xid := integer(xidOffBus)
	xid.group, xid.field, xid.ts = uint32(gpus), fieldXid, start.Add(time.Second).UnixMicro()
	for _, c := range []struct {
		after, read time.Duration
		down        string
	}{
		{0, 0, ""},
		{time.Second, 0, collector.ReasonLost},
		{20 * time.Second, 0, collector.ReasonLost},
		{21 * time.Second, 21 * time.Second, ""},
		{22 * time.Second, 22 * time.Second, ""},
	} {
		now := start.Add(c.after)
		clear(e.taken)
		d.begin()
		e.take(gpuRecord(start.Add(c.read), 60), now)
		if c.after > 0 {
			e.take(xid, now) // stays
		}
		if got := e.round(now).Devices[0].Down; got != c.down {
			t.Errorf("after %v: down %q, want %q", c.after, got, c.down)
		}
	}
}

// TestPowerRefused: for a driver without the power of the moment DCGM has 0 W and no
// error; the mean is the power then.
func TestPowerRefused(t *testing.T) {
	for instant, want := range map[float64]float64{0: 112, 95: 95} {
		e, d := oneGPU()
		now := time.Now()
		d.begin()
		for _, field := range []uint16{fieldPower, fieldPowerAverage} { // as in the rows
			r := double(map[uint16]float64{fieldPower: instant, fieldPowerAverage: 112}[field])
			r.group, r.field, r.ts = uint32(gpus), field, now.UnixMicro()
			e.take(r, now)
		}
		got := map[*collector.Metric]float64{}
		for _, x := range e.round(now).Devices[0].Readings {
			got[x.Metric] = x.Value
		}
		if _, mean := got[collector.PowerAverage]; got[collector.PowerWatts] != want || mean != (instant != 0) {
			t.Errorf("with %v W: %v, want %v W", instant, got[collector.PowerWatts], want)
		}
	}
}

// TestHealthHold: a state gets worse at once, and better after ten checks.
func TestHealthHold(t *testing.T) {
	var h health
	x := entity{gpus, 0}
	for i := range 12 {
		found := map[entity]map[string]dcgm.HealthResult{x: {}}
		if i == 0 {
			found[x][allWatches] = 20
		}
		h.hold(found)
		if got := found[x][allWatches]; (got == 20) != (i < holdChecks) {
			t.Errorf("check %d: %d", i, got)
		}
	}
}

// TestAbsenceCountsOnce: a value that the host engine does not have is counted when
// it disappears, not in every round.
func TestAbsenceCountsOnce(t *testing.T) {
	e, d := oneGPU()
	now := time.Now()
	counted := func(r *record) (n uint64) {
		clear(e.taken)
		d.begin()
		e.take(r, now)
		for _, c := range e.calls.take() {
			n += c.Count
		}
		return n
	}
	absent := gpuRecord(now, 60)
	absent.status = int32(noData)
	for i, want := range []uint64{1, 0, 0} {
		if got := counted(absent); got != want {
			t.Errorf("round %d: counted %d times, want %d", i, got, want)
		}
	}
	counted(gpuRecord(now, 60))
	if got := counted(absent); got != 1 {
		t.Errorf("after a value: counted %d times", got)
	}
}

// TestClockIsSet: the host engine's timestamps are times of day. Values do not become
// stale, and new ones are not ignored, because the clock was set.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		e, d := oneGPU()
		p := profiler{arrived: map[entity]time.Time{}, stamps: map[entity]int64{}}
		start := time.Now()
		for i, c := range []struct {
			after, read time.Duration // since the start
			set, readAt time.Duration // how far the clock was set, and that of the reading
			down        string
		}{
			{0, 0, 0, 0, ""},
			{time.Second, time.Second, by, 0, ""},
			{2 * time.Second, time.Second, by, 0, ""},
			{3 * time.Second, 3 * time.Second, by, by, ""},
			{30 * time.Second, 3 * time.Second, by, by, collector.ReasonStuck},
			{31 * time.Second, 31 * time.Second, by, by, ""},
		} {
			now := golden.SetClock(start.Add(c.after), c.set)
			e.clock(now)
			d.answered = now
			clear(e.taken)
			d.begin()
			r := gpuRecord(start.Add(c.read+c.readAt), 60)
			e.take(r, now)
			got := e.round(now).Devices[0]
			if got.Down != c.down || (len(got.Readings) == 0) != (c.down != "") || now.Sub(got.Sampled) < 0 || now.Sub(got.Sampled) > 28*time.Second {
				t.Errorf("by %v, round %d: down %q, %d readings, %v old", by, i, got.Down, len(got.Readings), now.Sub(got.Sampled))
			}
			r.field = profilingRows[0].field
			d.begin()
			p.take(e, r, now)
			if fresh := p.fresh(d.entity, now, time.Second); fresh != (c.down == "") {
				t.Errorf("by %v, round %d: profiling is fresh: %v", by, i, fresh)
			}
		}
	}
}
