package baseline_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

// FuzzJudge: for any sequence of Snapshots and catalogues, a Judge has the same result
// as a new Judge, does not change its input, and exports each series once.
func FuzzJudge(f *testing.F) {
	addRandom(f, 600)
	f.Fuzz(func(t *testing.T, data []byte) { checkRun(t, newGenerator(data)) })
}

func checkRun(t *testing.T, g *generator) {
	t.Helper()
	c := g.catalogue()
	resources := [][]string{nil, {promisedA}, {promisedA, "fpga.intel.com/region-" + afuA}, {"amd.com/xilinx_u250-0"}}
	current := resources[0]
	o := baseline.Options{Resources: func(string) []string { return current }}
	j := baseline.New(c, o)
	s := g.snapshot()
	for range 8 {
		fresh, lasting := snapshot(s.Node, s.Devices...), snapshot(s.Node, s.Devices...)
		baseline.New(c, o).Judge(fresh)
		j.Judge(lasting)
		if diff := cmp.Diff(concluded(fresh), concluded(lasting)); diff != "" {
			t.Fatalf("result of a Judge with state (-new +with state):\n%s", diff)
		}
		checkKept(t, s, lasting)
		switch g.below(8) {
		case 1:
			c = g.catalogue()
			j.Apply(c)
		case 2:
			current = resources[g.below(len(resources))]
		default:
			s = g.next(s)
		}
	}
}

// checkKept checks that the Judge only appended readings to those in was.
func checkKept(t *testing.T, was, s *collector.Snapshot) {
	t.Helper()
	same := func(a, b collector.Reading) bool {
		return a.Metric == b.Metric && a.Value == b.Value && slices.Equal(a.Labels, b.Labels)
	}
	judgedIDs := map[string]bool{}
	for i, d := range s.Devices {
		before := was.Devices[i].Readings
		if !slices.EqualFunc(before, d.Readings[:len(before)], same) {
			t.Fatalf("device %d was changed", i)
		}
		more := d.Readings[len(before):]
		if len(more) > 0 && (judgedIDs[d.ID] || d.Parent != "" || d.Class == "") {
			t.Errorf("device %d (%q, class %q, parent %q) has %v", i, d.ID, d.Class, d.Parent, more)
		}
		judgedIDs[d.ID] = judgedIDs[d.ID] || len(more) > 0
		for _, r := range more {
			if len(r.Labels) != len(r.Metric.Labels) || !r.Metric.Range.Contains(r.Value) {
				t.Errorf("%s%q is %v", r.Metric.Name, r.Labels, r.Value)
			}
			for _, l := range r.Labels {
				if !utf8.ValidString(l) || len(l) > 250 {
					t.Errorf("%s: label %q", r.Metric.Name, l)
				}
			}
		}
	}
	if n := len(was.Node); !slices.EqualFunc(was.Node, s.Node[:n], same) || len(s.Node) != n+1 {
		t.Fatalf("node: %+v", s.Node)
	}
}

// TestStale: after a value changes, the series with the old value ends.
func TestStale(t *testing.T) {
	j := baseline.New(parse(t, fleet), baseline.Options{})
	for _, step := range []struct {
		version string
		devices []collector.Device
		want    []string
	}{
		{"580.95.05", []collector.Device{h100("A"), h100("B")}, nil},
		{"590.1", []collector.Device{h100("A"), h100("B")}, []string{"A driver", "B driver"}},
		{"590.1", []collector.Device{h100("B")}, []string{"B driver"}},
		{"580.105.3", []collector.Device{h100("A", info(collector.FirmwareInfo, "inforom", "x")), h100("B")}, []string{"A inforom"}},
		{"580.105.3", []collector.Device{h100("A", info(collector.FirmwareInfo, "inforom", "G520.0200.00.05")), h100("B")}, nil},
	} {
		for range 2 { // an equal second Snapshot has the same result
			s := snapshot([]collector.Reading{driver(step.version, "13.0")}, step.devices...)
			j.Judge(s)
			var got []string
			for _, d := range s.Devices {
				for _, r := range d.Readings {
					if r.Metric == collector.Drift && r.Value == 1 && r.Labels[0] != "mig" {
						got = append(got, d.ID+" "+r.Labels[0])
					}
				}
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("driver %s: drift (-want +got):\n%s", step.version, diff)
			}
		}
	}
}

// TestFamilies: families with the same labels are compared separately.
func TestFamilies(t *testing.T) {
	j := baseline.New(parse(t, "entries: [{name: a, approved: {firmware: {x: [\"1\"]}, root_key: {x: [\"2\"]}}}]"), baseline.Options{})
	for m, want := range map[*collector.Metric]string{
		collector.FirmwareInfo:    "F x want 1 have 1: 0",
		collector.FPGARootKeyInfo: "F root_key/x want 2 have 1: 1",
	} {
		s := snapshot(nil, collector.Device{ID: "F", Class: collector.FPGA, Readings: []collector.Reading{up, info(m, "x", "1")}})
		j.Judge(s)
		if diff := cmp.Diff([]string{"F is a", want}, concluded(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.Name, diff)
		}
	}
}

// TestApply: a new catalogue applies from the next Snapshot.
func TestApply(t *testing.T) {
	j := baseline.New(nil, baseline.Options{})
	s := snapshot(nil, h100("G"))
	j.Judge(s)
	if got := concluded(s); len(got) != 0 || len(s.Node) != 0 {
		t.Errorf("without a catalogue: %q, %v", got, s.Node)
	}
	var wg sync.WaitGroup
	for n := range 4 {
		c := parse(t, fmt.Sprintf("entries: [{name: e%d}]", n))
		wg.Go(func() {
			for range 50 {
				j.Apply(c)
			}
		})
	}
	for range 50 {
		s := snapshot(nil, h100("G"), h100("H"))
		j.Judge(s)
		if got := concluded(s); len(got) > 0 && (len(got) != 2 || got[0][5:] != got[1][5:]) {
			t.Fatalf("%q", got)
		}
	}
	wg.Wait()
	j.Apply(parse(t, "entries: [{name: last}]"))
	s = snapshot(nil, h100("G"))
	j.Judge(s)
	if diff := cmp.Diff([]string{"G is last"}, concluded(s)); diff != "" {
		t.Error(diff)
	}
	want := []collector.Reading{{Metric: collector.BaselineEntries, Value: 1}}
	if diff := cmp.Diff(want, s.Node, cmp.Comparer(func(a, b *collector.Metric) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// TestSettled: an unchanged series keeps its label slice, by which a page detects that
// its layout is current. An unchanged Snapshot allocates no memory.
func TestSettled(t *testing.T) {
	j := baseline.New(parse(t, fleet), baseline.Options{Resources: func(string) []string { return nil }})
	devices := make([]collector.Device, 128)
	for i := range devices {
		devices[i] = h100(fmt.Sprint("GPU-", i))
	}
	s := snapshot([]collector.Reading{driver("580.95.05", "13.0")}, devices...)
	for i := range s.Devices {
		s.Devices[i].Readings = slices.Grow(s.Devices[i].Readings, 20)
	}
	s.Node = slices.Grow(s.Node, 1)
	j.Judge(snapshot(s.Node, append(devices, h100("gone"))...))
	judge := judgeAgain(j, s)
	judge()
	first := s.Devices[5].Readings[len(s.Devices[5].Readings)-1].Labels
	judge()
	last := s.Devices[5].Readings[len(s.Devices[5].Readings)-1].Labels
	if &first[0] != &last[0] {
		t.Error("the label slice was rebuilt")
	}
	if n := testing.AllocsPerRun(20, judge); n != 0 {
		t.Errorf("%v allocations in an unchanged Snapshot", n)
	}
}

// TestForgets: the state of devices that are gone is released.
func TestForgets(t *testing.T) {
	j := baseline.New(parse(t, fleet), baseline.Options{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for n := range 100 {
		devices := make([]collector.Device, 200)
		for i := range devices {
			devices[i] = h100(fmt.Sprint("GPU-", n, "-", i))
		}
		j.Judge(snapshot(nil, devices...))
	}
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("%d bytes are retained", grown)
	}
	runtime.KeepAlive(j)
}

// judgeAgain returns a function that judges s again, without the added readings.
func judgeAgain(j *baseline.Judge, s *collector.Snapshot) func() {
	node := len(s.Node)
	lengths := make([]int, len(s.Devices))
	for i := range lengths {
		lengths[i] = len(s.Devices[i].Readings)
	}
	return func() {
		s.Node = s.Node[:node]
		for i, n := range lengths {
			s.Devices[i].Readings = s.Devices[i].Readings[:n]
		}
		j.Judge(s)
	}
}
