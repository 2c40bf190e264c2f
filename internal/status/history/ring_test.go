package history

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine returns a function that makes the Snapshot of a second: GPUs of which most
// readings stay and some change, each in another way.
func machine(gpus, links int) func(second int) *collector.Snapshot {
	labels := make([][]string, links)
	for l := range labels {
		labels[l] = []string{fmt.Sprint(l)}
	}
	random := rand.New(rand.NewPCG(1, 2))
	return func(second int) *collector.Snapshot {
		s := &collector.Snapshot{Time: start.Add(time.Duration(second) * time.Second)}
		for g := range gpus {
			d := collector.Device{ID: fmt.Sprint("GPU-", g)}
			d.Set(collector.DeviceInfo, 1, make([]string, len(collector.DeviceInfo.Labels))...)
			d.Set(collector.PowerWatts, float64(random.IntN(700_000))/1000)
			d.Set(collector.TemperatureCelsius, float64(60+random.IntN(5)), "gpu")
			d.Set(collector.UtilizationRatio, float64(random.IntN(100))/100, "compute")
			d.Set(collector.EnergyJoules, float64(second)*612.345)
			if second%7 != 3 { // absent, not 0
				d.Set(collector.ActivityRatio, random.Float64(), "sm")
			}
			for l := range links {
				d.Set(collector.NVLinkUp, 1, labels[l]...)
				d.Set(collector.GPUNVLinkErrors, float64(second*l), labels[l]...)
			}
			s.Devices = append(s.Devices, d)
		}
		return s
	}
}

// TestRounds: the rounds are what was added, each second of the last ten minutes, and
// neither a value nor its absence is lost.
func TestRounds(t *testing.T) {
	var r Ring
	snapshot := machine(2, 3)
	all := map[time.Time]*collector.Snapshot{}
	const seconds = 700
	for second := range seconds {
		s := snapshot(second)
		if second > 650 {
			s.Devices = s.Devices[1:] // a GPU is gone
		}
		r.Add(s)
		again := *s
		again.Time = again.Time.Add(300 * time.Millisecond) // of an event
		again.Devices = nil
		r.Add(&again)
		all[s.Time] = s
	}
	rounds := 0
	for at, devices := range r.Rounds() {
		rounds++
		got := map[string][]collector.Reading{}
		for id, readings := range devices {
			got[id] = append([]collector.Reading(nil), readings...)
		}
		want := map[string][]collector.Reading{}
		for _, d := range all[at].Devices {
			want[d.ID] = d.Readings[1:] // without the Info
		}
		// A series that was absent at the start of its segment follows the others.
		if d := cmp.Diff(bySeries(want), bySeries(got)); d != "" {
			t.Fatalf("%s (-want +got):\n%s", at, d)
		}
	}
	if rounds < 600 || rounds > 661 {
		t.Errorf("%d rounds", rounds)
	}
}

func bySeries(devices map[string][]collector.Reading) map[string]float64 {
	out := map[string]float64{}
	for id, readings := range devices {
		for _, r := range readings {
			out[fmt.Sprint(id, r.Metric.Name, r.Labels)] = r.Value
		}
	}
	return out
}

// TestMemory: the history of ten minutes fits into the budget of a node with few or many
// GPUs. GPUs with more series that change each second than any has need no more, and the
// newest readings stay.
func TestMemory(t *testing.T) {
	const beyond = "beyond the budget"
	for name, c := range map[string]struct{ gpus, links, budget int }{
		"a board with NVLink": {8, 18, Budget}, "many GPUs": {64, 18, maxBudget}, beyond: {8, 400, Budget},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		snapshot, r := machine(c.gpus, c.links), &Ring{}
		for second := range 700 {
			r.Add(snapshot(second))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		var first, last time.Time
		for at := range r.Rounds() {
			if last = at; first.IsZero() {
				first = at
			}
		}
		used := int(after.HeapAlloc - before.HeapAlloc)
		t.Logf("%s: %d KiB, %s", name, used>>10, last.Sub(first))
		if used > c.budget+c.budget/4 || !last.Equal(start.Add(699*time.Second)) || name != beyond && last.Sub(first) < Length {
			t.Errorf("%s: %d bytes for %s", name, used, last.Sub(first))
		}
		runtime.KeepAlive(r)
	}
}

func BenchmarkAdd(b *testing.B) {
	snapshot, r := machine(8, 40), &Ring{}
	b.ReportAllocs()
	for second := 0; b.Loop(); second++ {
		b.StopTimer()
		s := snapshot(second)
		b.StartTimer()
		r.Add(s)
	}
}
