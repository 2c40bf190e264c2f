package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeSource is a Source with a replaceable sample function.
type fakeSource struct {
	name string

	mu     sync.Mutex
	sample func(context.Context) (Round, error)
	inside int // calls that have not returned
	most   int // maximum of inside
	closed bool
}

func (f *fakeSource) Name() string { return f.name }

func (f *fakeSource) Sample(ctx context.Context) (Round, error) {
	f.mu.Lock()
	sample := f.sample
	f.inside++
	f.most = max(f.most, f.inside)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.inside--
		f.mu.Unlock()
	}()
	return sample(ctx)
}

func (f *fakeSource) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (f *fakeSource) answer(r Round, err error) {
	f.do(func(context.Context) (Round, error) { return clone(r), err })
}

func (f *fakeSource) do(sample func(context.Context) (Round, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sample = sample
}

// clone copies r, because the Sampler owns a Round that it receives.
func clone(r Round) Round {
	r.Devices = slices.Clone(r.Devices)
	for i := range r.Devices {
		r.Devices[i].Readings = slices.Clone(r.Devices[i].Readings)
	}
	return r
}

func newFake(name string, devices ...Device) *fakeSource {
	f := &fakeSource{name: name}
	f.answer(Round{Devices: devices}, nil)
	return f
}

// start runs a Sampler of the sources until the test ends.
func start(t *testing.T, set Settings, sources ...Source) *Sampler {
	t.Helper()
	s := NewSampler(set)
	for _, src := range sources {
		s.Add(src)
	}
	run(t, s)
	return s
}

// run runs a Sampler until the test ends.
func run(t *testing.T, s *Sampler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// tick lets one interval of the fake clock pass.
func tick() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// card is a device of an unknown vendor with one series of each kind.
func card(id string, temperature, energy float64) Device {
	d := Device{ID: id, Class: FPGA, Vendor: "acme", Model: "A1", PCI: "slot of " + id, Sampled: time.Now()}
	d.Set(TemperatureCelsius, temperature, "gpu")
	d.Set(EnergyJoules, energy)
	d.Set(FirmwareInfo, 1, "vbios", "7")
	return d
}

func down(id, why string) Device { return Device{ID: id, Down: why} }

func part(id, parent string) Device {
	return Device{ID: id, Parent: parent, Class: GPU, Vendor: "nvidia"}
}

// page returns one line per series of the families. It omits zeros of
// accel_source_rounds_total.
func page(s *Snapshot, families ...*Metric) []string {
	out := []string{}
	add := func(id string, r Reading) {
		if !slices.Contains(families, r.Metric) || r.Metric == SourceRounds && r.Value == 0 {
			return
		}
		labels := strings.Join(append([]string{id}, r.Labels...), ",")
		name := strings.TrimPrefix(r.Metric.Name, "accel_")
		out = append(out, fmt.Sprintf("%s{%s} %v", name, strings.TrimPrefix(labels, ","), r.Value))
	}
	for _, r := range s.Node {
		add("", r)
	}
	for _, d := range s.Devices {
		for _, r := range d.Readings {
			add(d.ID, r)
		}
	}
	return out
}

func expect(t *testing.T, s *Sampler, families []*Metric, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, page(s.Latest(), families...)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// TestSamplerRounds checks the series after each round.
func TestSamplerRounds(t *testing.T) {
	shown := []*Metric{SourceUp, SourceRounds, SourceReleasedMetric, DriverInfo, DeviceUp, TemperatureCelsius, EnergyJoules, FirmwareInfo}
	driver := []Reading{
		{DriverInfo, []string{"acme", "1", "", "", ""}, 1},
		{UtilizationRatio, []string{"compute"}, 1},
	}
	type step struct {
		devices []Device
		node    []Reading
		err     error
		want    []string
	}
	up := func(id string) []string {
		return []string{"temperature_celsius{" + id + ",gpu} 40", "energy_joules_total{" + id + "} 7", "firmware_info{" + id + ",vbios,7} 1", "device_up{" + id + ",} 1"}
	}
	gone := func(id, why string) []string {
		return []string{"energy_joules_total{" + id + "} 7", "firmware_info{" + id + ",vbios,7} 1", "device_up{" + id + "," + why + "} 0"}
	}
	blind := func(id string) []string {
		return []string{"energy_joules_total{" + id + "} 7", "firmware_info{" + id + ",vbios,7} 1"}
	}
	src := func(reason string, up int, rounds ...string) []string {
		l := []string{fmt.Sprintf("source_up{s,%s} %d", reason, up), "source_released{s} 0"}
		if reason == SourceReleased {
			l[1] = "source_released{s} 1"
		}
		for _, r := range rounds {
			l = append(l, "source_rounds_total{s,"+strings.Replace(r, "=", "} ", 1))
		}
		return l
	}
	partial := card("b", 50, 9)
	partial.Down, partial.Readings = ReasonLost, partial.Readings[:2] // lost while it was being read
	uncounted := Device{ID: "a", Class: FPGA, Vendor: "acme", Sampled: time.Now()}
	uncounted.Set(TemperatureCelsius, 41, "gpu")
	passing := Device{ID: "place 1", Passing: true, KubeIDs: []string{"1"}, PCI: card("a", 0, 0).PCI, Class: FPGA, Down: ReasonLost}
	successor := card("b", 40, 7)
	successor.PCI = card("a", 0, 0).PCI
	renamed := Device{ID: "a", Down: ReasonError}
	renamed.Set(FirmwareInfo, 1, "vbios", "8")

	for name, steps := range map[string][]step{
		"ok": {
			{devices: []Device{card("a", 40, 7)}, node: driver, want: slices.Concat([]string{"driver_info{acme,1,,,} 1"}, src("", 1, "ok=1"), up("a"))},
			{devices: []Device{card("a", 40, 7)}, node: driver, want: slices.Concat([]string{"driver_info{acme,1,,,} 1"}, src("", 1, "ok=2"), up("a"))},
		},
		"partial": {
			{devices: []Device{card("a", 40, 7)}, err: errors.New("read b: oops"), want: slices.Concat(src("", 1, "partial=1"), up("a"))},
		},
		"source fails and recovers": {
			{devices: []Device{card("a", 40, 7)}, node: driver, want: slices.Concat([]string{"driver_info{acme,1,,,} 1"}, src("", 1, "ok=1"), up("a"))},
			{err: errors.New("oops"), want: slices.Concat([]string{"driver_info{acme,1,,,} 1"}, src("error", 0, "ok=1", "failed=1"), blind("a"))},
			{err: fmt.Errorf("x: %w", ErrDriver), want: slices.Concat([]string{"driver_info{acme,1,,,} 1"}, src("driver", 0, "ok=1", "failed=2"), blind("a"))},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=2", "failed=2"), up("a"))},
		},
		"absent and released do not count as failed, reloaded does": {
			{err: ErrAbsent, want: []string{"source_up{s,absent} 0"}},
			{err: ErrReleased, want: src("released", 0)},
			{err: ErrRestart, want: src("driver_reloaded", 0, "failed=1")},
			{err: ErrAbsent, want: src("absent", 0, "failed=1")},
		},
		"one device down": {
			{devices: []Device{card("a", 40, 7), card("b", 50, 7)}, want: slices.Concat(src("", 1, "ok=1"), up("a"), []string{"temperature_celsius{b,gpu} 50"}, up("b")[1:])},
			{devices: []Device{card("a", 40, 7), down("b", ReasonLost)}, want: slices.Concat(src("", 1, "ok=2"), up("a"), gone("b", "lost"))},
			{devices: []Device{card("a", 40, 7), down("b", ReasonStuck)}, want: slices.Concat(src("", 1, "ok=3"), up("a"), gone("b", "stuck"))},
			{err: ErrCrashed, want: slices.Concat(src("crashed", 0, "ok=3", "failed=1"), blind("a"), blind("b"))},
			{devices: []Device{card("a", 40, 7), card("b", 40, 7)}, want: slices.Concat(src("", 1, "ok=4", "failed=1"), up("a"), up("b"))},
		},
		"down with some readings": {
			{devices: []Device{card("b", 40, 7)}, want: slices.Concat(src("", 1, "ok=1"), up("b"))},
			{devices: []Device{partial}, want: slices.Concat(src("", 1, "ok=2"), []string{"energy_joules_total{b} 9", "firmware_info{b,vbios,7} 1", "device_up{b,lost} 0"})},
		},
		"down for a reason that the source defines": {
			{devices: []Device{{ID: "a", Class: FPGA, Down: "in_reset"}}, want: slices.Concat(src("", 1, "ok=1"), []string{"device_up{a,in_reset} 0"})},
		},
		"missing, then forgotten": {
			{devices: []Device{card("a", 40, 7), card("b", 40, 7)}, want: slices.Concat(src("", 1, "ok=1"), up("a"), up("b"))},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=2"), up("a"), gone("b", "missing"))},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=3"), up("a"), gone("b", "missing"))},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=4"), up("a"), gone("b", "missing"))},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=5"), up("a"))},
		},
		"replaced in its slot": {
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=1"), up("a"))},
			{devices: []Device{successor}, want: slices.Concat(src("", 1, "ok=2"), up("b"))},
		},
		"up without one of its counters": {
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=1"), up("a"))},
			{devices: []Device{uncounted}, want: slices.Concat(src("", 1, "ok=2"), []string{"temperature_celsius{a,gpu} 41", "energy_joules_total{a} 7", "device_up{a,} 1"})},
		},
		"known, then found by its PCI address only": {
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=1"), up("a"))},
			{devices: []Device{passing}, want: slices.Concat(src("", 1, "ok=2"), gone("a", "lost"))},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=3"), up("a"))},
		},
		"partition removed by a reconfiguration": {
			{devices: []Device{card("a", 40, 7), part("m", "a")}, want: slices.Concat(src("", 1, "ok=1"), up("a"), []string{"device_up{m,} 1"})},
			{devices: []Device{card("a", 40, 7)}, want: slices.Concat(src("", 1, "ok=2"), up("a"))},
		},
		"partition of a device that is down": {
			{devices: []Device{card("a", 40, 7), part("m", "a")}, want: slices.Concat(src("", 1, "ok=1"), up("a"), []string{"device_up{m,} 1"})},
			{devices: []Device{down("a", ReasonLost)}, want: slices.Concat(src("", 1, "ok=2"), gone("a", "lost"), []string{"device_up{m,lost} 0"})},
			{want: slices.Concat(src("", 1, "ok=3"), gone("a", "missing"), []string{"device_up{m,missing} 0"})},
			{want: slices.Concat(src("", 1, "ok=4"), gone("a", "missing"), []string{"device_up{m,missing} 0"})},
			{want: slices.Concat(src("", 1, "ok=5"), gone("a", "missing"), []string{"device_up{m,missing} 0"})},
			{want: src("", 1, "ok=6")}, // forgotten together
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("s")
				set := DefaultSettings()
				set.ForgetAfter = 3 * time.Second
				var s *Sampler
				for i, st := range steps {
					f.answer(Round{Devices: st.devices, Node: st.node}, st.err)
					if s == nil {
						s = start(t, set, f)
						synctest.Wait()
					} else {
						tick()
					}
					slices.Sort(st.want)
					got := page(s.Latest(), shown...)
					slices.Sort(got)
					if diff := cmp.Diff(st.want, got); diff != "" {
						t.Errorf("after round %d (-want +got):\n%s", i+1, diff)
					}
				}
			})
		})
	}
}

func TestSamplerStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("s")
		answer := make(chan struct{})
		f.do(func(context.Context) (Round, error) {
			<-answer
			return Round{Devices: []Device{card("a", 1, 1)}}, errors.New("b\xff cannot be read")
		})
		s := NewSampler(DefaultSettings())
		if s.Latest() != nil {
			t.Error("a Snapshot before Run")
		}
		s = start(t, DefaultSettings(), f)
		synctest.Wait()
		if diff := cmp.Diff([]Status{{Source: "s", Reason: SourceStarting}}, s.Latest().Sources); diff != "" {
			t.Errorf("before the first round (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Second)
		close(answer)
		synctest.Wait()
		want := []Status{{Source: "s", Up: true, Err: "b? cannot be read", Took: 2 * time.Second, LastSuccess: time.Now()}}
		if diff := cmp.Diff(want, s.Latest().Sources); diff != "" {
			t.Errorf("after a partial round (-want +got):\n%s", diff)
		}
		expect(t, s, []*Metric{SourceDuration}, "source_round_duration_seconds{s} 2")

		f.answer(Round{}, errors.New(strings.Repeat("x", 1e5)))
		tick()
		if got := s.Latest().Sources[0]; got.Up || got.Reason != SourceError || len(got.Err) > 3000 {
			t.Errorf("after a failure with a long text: up %v, reason %q, %d bytes of text", got.Up, got.Reason, len(got.Err))
		}
	})
}

// TestSamplerOneSnapshot: the rounds of a tick make one Snapshot, also after a round
// that was late, or was asked for between two ticks.
func TestSamplerOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := func(d time.Duration) func(context.Context) (Round, error) {
			return func(context.Context) (Round, error) { time.Sleep(d); return Round{}, nil }
		}
		fast, slow := newFake("fast"), newFake("slow")
		slow.do(takes(20 * time.Millisecond))
		s := start(t, DefaultSettings(), fast, slow)
		time.Sleep(300 * time.Millisecond)
		want := func(of string) {
			t.Helper()
			before := s.Latest().Seq
			for range 10 {
				tick()
			}
			if n := s.Latest().Seq - before; n != 10 {
				t.Errorf("%s: %d Snapshots in 10 ticks", of, n)
			}
		}
		want("fast and slow")
		slow.do(takes(1300 * time.Millisecond))
		tick()
		slow.do(takes(20 * time.Millisecond))
		tick()
		want("after a late round")
		s.Wake("fast")
		synctest.Wait()
		want("after a round between two ticks")
	})
}

// TestSamplerStuck: a Sample that does not return affects only its own source. It
// is not called concurrently, and its late readings are not published.
func TestSamplerStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, other := newFake("stuck"), newFake("other", card("o", 1, 1))
		shown := []*Metric{SourceUp, SourceStuck, SourceRounds, SourceRestarts, NativeCallErrors, EnergyJoules, TemperatureCelsius}
		rest := func(rounds int) []string {
			return []string{"source_up{other,} 1", "source_stuck{other} 0", fmt.Sprintf("source_rounds_total{other,ok} %d", rounds)}
		}
		o := []string{"temperature_celsius{o,gpu} 1", "energy_joules_total{o} 1"}
		set := DefaultSettings()
		set.Timeout = map[string]time.Duration{"stuck": 1500 * time.Millisecond}
		stuck.answer(Round{Devices: []Device{card("a", 40, 7)}}, nil)
		s := start(t, set, stuck, other)
		synctest.Wait()

		release := make(chan struct{})
		stuck.do(func(context.Context) (Round, error) {
			<-release
			return Round{Devices: []Device{card("a", 99, 99)}, Calls: []CallError{{"nvmlFoo", "timeout", 2}}}, &WorkerExit{How: "hung"}
		})
		tick()
		tick()
		expect(t, s, shown, slices.Concat(
			[]string{"source_up{stuck,} 1", "source_stuck{stuck} 0", "source_rounds_total{stuck,ok} 1"}, rest(3),
			[]string{"temperature_celsius{a,gpu} 40", "energy_joules_total{a} 7"}, o)...)
		for range 20 {
			tick()
		}
		expect(t, s, shown, slices.Concat(
			[]string{"source_up{stuck,timeout} 0", "source_stuck{stuck} 1", "source_rounds_total{stuck,ok} 1", "source_rounds_total{stuck,failed} 1"}, rest(23),
			[]string{"energy_joules_total{a} 7"}, o)...)

		close(release)
		synctest.Wait()
		expect(t, s, shown, slices.Concat(
			[]string{
				"source_up{stuck,timeout} 0", "source_stuck{stuck} 0", "source_rounds_total{stuck,ok} 1", "source_rounds_total{stuck,failed} 1",
				"source_worker_exits_total{stuck,hung} 1", "native_call_errors_total{stuck,nvmlFoo,timeout} 2",
			}, rest(23),
			[]string{"energy_joules_total{a} 7"}, o)...)

		stuck.answer(Round{Devices: []Device{card("a", 41, 8)}}, nil)
		tick()
		expect(t, s, []*Metric{SourceUp, SourceStuck, TemperatureCelsius, EnergyJoules}, slices.Concat(
			[]string{"source_up{stuck,} 1", "source_stuck{stuck} 0"}, rest(0)[:2],
			[]string{"temperature_celsius{a,gpu} 41", "energy_joules_total{a} 8"}, o)...)
		if stuck.most != 1 {
			t.Errorf("%d calls of Sample at one time", stuck.most)
		}
	})
}

// TestSourceAge: the age of a source grows while it does not return, also where no
// other source causes a Snapshot.
func TestSourceAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := newFake("s", card("a", 40, 7)), make(chan struct{})
		t.Cleanup(func() { close(release) })
		s := start(t, DefaultSettings(), f)
		synctest.Wait()
		expect(t, s, []*Metric{SourceAge}, "source_age_seconds{s} 0")
		f.do(func(context.Context) (Round, error) { <-release; return Round{}, nil })
		time.Sleep(time.Hour + 100*time.Millisecond)
		synctest.Wait()
		expect(t, s, []*Metric{SourceAge}, "source_age_seconds{s} 3600")
	})
}

func TestSamplerPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("s", card("a", 40, 7))
		s := start(t, DefaultSettings(), f)
		synctest.Wait()
		f.do(func(context.Context) (Round, error) { panic("index out of luck") })
		tick()
		expect(t, s, []*Metric{SourceUp, SourceRounds, EnergyJoules}, "source_up{s,error} 0", "source_rounds_total{s,ok} 1", "source_rounds_total{s,failed} 1", "energy_joules_total{a} 7")
		if got := s.Latest().Sources[0].Err; got != "panic: index out of luck" {
			t.Errorf("error is %q", got)
		}
		f.answer(Round{Devices: []Device{card("a", 40, 7)}}, nil)
		tick()
		expect(t, s, []*Metric{SourceUp}, "source_up{s,} 1")
	})
}

// TestSamplerEnd: Run closes its sources, except a source whose Sample has not
// returned.
func TestSamplerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		good, hung, cancelled := newFake("good"), newFake("hung"), newFake("cancelled")
		hung.do(func(context.Context) (Round, error) { <-release; return Round{}, nil })
		cancelled.do(func(ctx context.Context) (Round, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return Round{}, nil
		})
		s := NewSampler(DefaultSettings())
		for _, f := range []*fakeSource{good, hung, cancelled} {
			s.Add(f)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err == nil || err.Error() != "close hung: its Sample has not returned" {
			t.Errorf("Run returned %v", err)
		}
		for f, want := range map[*fakeSource]bool{good: true, hung: false, cancelled: true} {
			if f.closed != want {
				t.Errorf("%s: closed %v, want %v", f.name, f.closed, want)
			}
		}
		close(release)
	})
}

func gpu(id string) Device {
	d := Device{ID: id, Class: GPU, Vendor: "nvidia", Model: "H100", Sampled: time.Now()}
	d.Set(EnergyJoules, 7)
	return d
}

func xid(device string, code uint64) Event {
	return Event{Time: time.Unix(1e9, 5e8), Source: "s", Device: device, Kind: EventXid, Code: code}
}

// nonzero is page without zeros.
func nonzero(s *Snapshot, families ...*Metric) []string {
	return slices.DeleteFunc(page(s, families...), func(l string) bool { return strings.HasSuffix(l, " 0") })
}

func TestSamplerEvents(t *testing.T) {
	shown := []*Metric{XidErrors, XidTimestamp, DeviceEvents, SourceEventsLost}
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"xid": {
			[]Event{xid("a", 79), xid("a", 79), xid("a", 31)},
			[]string{"gpu_xid_errors_total{a,31} 1", "gpu_xid_errors_total{a,79} 2", "gpu_xid_last_timestamp_seconds{a,79,} 1.0000000005e+09", "gpu_xid_last_timestamp_seconds{a,31,} 1.0000000005e+09"},
		},
		"not in the baseline": {[]Event{xid("a", 77), {Source: "s", Device: "a", Kind: EventPowerSource}}, []string{"gpu_xid_errors_total{a,77} 1", "gpu_xid_last_timestamp_seconds{a,77,} 1.0000000005e+09", "device_events_total{a,power_source_change} 1"}},
		"of a partition":      {[]Event{{Time: time.Unix(1e9, 0), Source: "s", Device: "a", Partition: "m", Kind: EventXid, Code: 43}}, []string{"gpu_xid_errors_total{a,43} 1", "gpu_xid_last_timestamp_seconds{a,43,m} 1e+09"}},
		"without a time":      {[]Event{{Source: "s", Device: "a", Kind: EventXid, Code: 43}}, []string{"gpu_xid_errors_total{a,43} 1", "gpu_xid_last_timestamp_seconds{a,43,} 9.46684800001e+08"}},
		"other kinds":         {[]Event{{Source: "s", Device: "a", Kind: EventECCDoubleBit}, {Source: "s", Device: "a", Kind: EventECCDoubleBit}}, []string{"device_events_total{a,ecc_double_bit} 2"}},
		"no device":           {[]Event{xid("", 79)}, []string{"source_events_lost_total{s} 1"}},
		"device never seen":   {[]Event{xid("ghost", 79)}, []string{"gpu_xid_errors_total{ghost,79} 1", "gpu_xid_last_timestamp_seconds{ghost,79,} 1.0000000005e+09"}},
		"unregistered source": {[]Event{{Source: "else", Device: "a", Kind: EventXid, Code: 79}}, []string{}},
		"a burst":             {slices.Repeat([]Event{xid("a", 79)}, 1000), []string{"gpu_xid_errors_total{a,79} 1000", "gpu_xid_last_timestamp_seconds{a,79,} 1.0000000005e+09"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, DefaultSettings(), newFake("s", gpu("a")))
				time.Sleep(time.Millisecond) // between two ticks
				synctest.Wait()
				expect(t, s, []*Metric{DeviceEvents}, "device_events_total{a,mig_config_change} 0", "device_events_total{a,recovery_action_change} 0",
					"device_events_total{a,gpu_unavailable} 0", "device_events_total{a,ecc_double_bit} 0")
				if n := len(page(s.Latest(), XidErrors)); n != len(xidBaseline) {
					t.Errorf("%d Xids are 0, want %d", n, len(xidBaseline))
				}
				began := time.Now()
				for _, e := range c.events {
					s.Emit(e)
				}
				synctest.Wait()
				if !time.Now().Equal(began) {
					t.Error("publishing took until a tick")
				}
				if diff := cmp.Diff(c.want, nonzero(s.Latest(), shown...)); diff != "" {
					t.Errorf("series (-want +got):\n%s", diff)
				}
				if got, want := len(s.Latest().Events), min(len(c.events), shownEvents); got != want {
					t.Errorf("the Snapshot has %d events, want %d", got, want)
				}
			})
		})
	}
}

// TestSamplerEventsOutlive: event counts start before the first round. They
// continue while the source fails and while the device is missing.
func TestSamplerEventsOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown := []*Metric{XidErrors, DeviceUp}
		f := newFake("s")
		f.answer(Round{}, ErrDriver)
		s := start(t, DefaultSettings(), f)
		synctest.Wait()
		step := func(name string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, nonzero(s.Latest(), shown...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		s.Emit(xid("a", 79))
		step("before the first round", "gpu_xid_errors_total{a,79} 1")
		f.answer(Round{Devices: []Device{gpu("a")}}, nil)
		tick()
		step("after it", "device_up{a,} 1", "gpu_xid_errors_total{a,79} 1")
		if n := len(page(s.Latest(), XidErrors)); n != len(xidBaseline) {
			t.Errorf("%d Xids from the first round on, want %d", n, len(xidBaseline))
		}
		f.answer(Round{}, ErrCrashed)
		tick()
		s.Emit(xid("a", 79))
		step("while the source is down", "gpu_xid_errors_total{a,79} 2")
		f.answer(Round{}, nil)
		tick()
		s.Emit(xid("a", 79))
		step("while the device is missing", "gpu_xid_errors_total{a,79} 3")
		f.answer(Round{Devices: []Device{gpu("a"), gpu("b")}}, nil)
		tick()
		s.Emit(xid("a", 79))
		step("after the recovery", "device_up{a,} 1", "gpu_xid_errors_total{a,79} 4", "device_up{b,} 1")
	})
}

// TestSamplerBounds: a library that returns endless names and codes creates a
// bounded number of series. The rest is counted as lost or as other.
func TestSamplerBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("s", gpu("a"))
		s := start(t, DefaultSettings(), f)
		synctest.Wait()
		const many = maxCells + 100
		for i := range many {
			s.Emit(xid("a", uint64(1000+i)))
			s.Emit(xid(fmt.Sprint("ghost", i), 79))
			s.Emit(Event{Source: "s", Device: "a", Partition: fmt.Sprint("m", i), Kind: EventXid, Code: 79})
		}
		var calls []CallError
		d := gpu("a")
		for i := range many {
			calls = append(calls, CallError{"nvmlFoo", fmt.Sprint("code_", i), 1})
			d.Reject(EnergyJoules, fmt.Sprint("reason_", i))
		}
		f.answer(Round{Devices: []Device{d}, Calls: calls}, nil)
		tick()
		snap := s.Latest()
		for _, c := range []struct {
			m   *Metric
			max int
			sum float64
		}{
			{XidErrors, maxXids + maxUnknown, many + maxUnknown + float64(maxXids-len(xidBaseline))},
			{XidTimestamp, maxCells + maxXids + maxUnknown, 0},
			{NativeCallErrors, maxCells + 1, many},
			{SourceRejected, maxCells + 1, many},
		} {
			n, sum := 0, 0.0
			for _, d := range append(snap.Devices, Device{Readings: snap.Node}) {
				for _, r := range d.Readings {
					if r.Metric == c.m {
						n++
						sum += r.Value
					}
				}
			}
			if n > c.max || c.sum != 0 && sum != c.sum {
				t.Errorf("%s: %d series of at most %d, their sum %v of %v", c.m.Name, n, c.max, sum, c.sum)
			}
		}
		lost := many - (maxXids - len(xidBaseline)) + many - maxUnknown
		expect(t, s, []*Metric{SourceEventsLost}, fmt.Sprintf("source_events_lost_total{s} %d", lost))
		if got := page(snap, NativeCallErrors); !slices.Contains(got, fmt.Sprintf("native_call_errors_total{s,other,other} %d", many-maxCells)) {
			t.Errorf("series beyond the limit are counted as %q", got[len(got)-1])
		}
	})
}

// TestSamplerDevices: a source that names other devices in each round fills no memory.
func TestSamplerDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("s", gpu("a"))
		s := start(t, DefaultSettings(), f)
		synctest.Wait()
		devices := []Device{gpu("a")}
		for i := range maxDevices + 7 {
			devices = append(devices, gpu(fmt.Sprint("d", i)))
		}
		f.answer(Round{Devices: devices}, nil)
		tick()
		snap := s.Latest()
		if n := len(snap.Devices); n != maxDevices || snap.Devices[0].ID != "a" {
			t.Errorf("%d devices of at most %d", n, maxDevices)
		}
		if err := snap.Sources[0].Err; !strings.HasPrefix(err, "8 devices are left out") {
			t.Errorf("the status says %q", err)
		}
	})
}

// TestSnapshotImmutable: a published Snapshot does not change. The race detector
// also checks that the Sampler does not write to it.
func TestSnapshotImmutable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("s")
		s := start(t, DefaultSettings(), f)
		everything := Table()
		var readers sync.WaitGroup
		for i := range 50 {
			devices := []Device{gpu("a"), card("b", float64(i), float64(i))}
			if i%3 == 1 {
				devices[1] = down("b", ReasonLost)
			}
			var err error
			if i%7 == 6 {
				devices, err = nil, ErrCrashed
			}
			f.answer(Round{Devices: devices, Calls: []CallError{{"nvmlFoo", fmt.Sprint(i), 1}}, Node: []Reading{{DriverInfo, make([]string, 5), 1}}}, err)
			next := s.Next()
			s.Emit(xid("a", uint64(i%5)))
			<-next
			snap := s.Latest()
			was := page(snap, everything...)
			events := slices.Clone(snap.Events)
			readers.Go(func() {
				for range 4 {
					time.Sleep(1500 * time.Millisecond)
					if diff := cmp.Diff(was, page(snap, everything...)) + cmp.Diff(events, snap.Events); diff != "" {
						t.Errorf("Snapshot %d has changed:\n%s", snap.Seq, diff)
						return
					}
				}
			})
			time.Sleep(700 * time.Millisecond)
		}
		readers.Wait()
	})
}
