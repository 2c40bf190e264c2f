package health_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// node is a Snapshot of n GPUs with about 200 readings each. Every eighth GPU is
// degraded.
func node(n int) *collector.Snapshot {
	s := &collector.Snapshot{Time: start}
	for i := range n {
		d := device(fmt.Sprintf("GPU-%03d", i), collector.GPU, start, at(fmt.Sprintf("0000:%02x:00.0", i)), driver("none"))
		d.Vendor = "nvidia"
		for link := range 18 {
			l := strconv.Itoa(link)
			d.Set(collector.NVLinkUp, 1, l)
			for _, kind := range []string{"crc", "replay", "recovery"} {
				d.Set(collector.NVLinkErrors, 0, l, kind)
			}
			d.Set(collector.NVLinkTransmit, 1e9, l)
			d.Set(collector.NVLinkReceive, 1e9, l)
		}
		for x := range 50 {
			d.Set(collector.XidErrors, 0, strconv.Itoa(x))
		}
		for _, sensor := range []string{"gpu", "memory"} {
			d.Set(collector.TemperatureCelsius, 60, sensor)
			d.Set(collector.TemperatureLimit, 95, sensor, "shutdown")
		}
		for _, location := range []string{"dram", "sram"} {
			d.Set(collector.ECCErrors, 0, "uncorrected", location)
		}
		d.Set(collector.PCIeWidth, 16)
		d.Set(collector.PCIeWidthMax, 16)
		d.Set(collector.EnergyJoules, 1e6)
		d.SetBool(collector.RowRemapPending, i%8 == 0)
		s.Devices = append(s.Devices, d)
		if i%8 == 0 {
			s.News = append(s.News, xid(119, of(d.ID), func(e *collector.Event) { e.Time = start }))
		}
	}
	return s
}

// rounds returns a function that judges the next round of s. room is the spare
// capacity for readings of each device.
func rounds(s *collector.Snapshot, room int) func(j *health.Judge) {
	for i := range s.Devices {
		n := len(s.Devices[i].Readings)
		s.Devices[i].Readings = slices.Grow(s.Devices[i].Readings, room)[: n : n+room]
	}
	devices := slices.Clone(s.Devices)
	return func(j *health.Judge) {
		copy(s.Devices, devices)
		s.Distributions = s.Distributions[:0]
		s.Time = s.Time.Add(time.Second)
		j.Judge(s)
		s.News = nil
	}
}

// TestAllocations: an unchanged verdict allocates nothing but space for its readings.
func TestAllocations(t *testing.T) {
	const devices = 128
	for room, most := range map[int]float64{0: devices, 64: 0} {
		j, round := health.New(health.Builtin(), health.Options{}), rounds(node(devices), room)
		round(j)
		round(j)
		if got := testing.AllocsPerRun(20, func() { round(j) }); got > most {
			t.Errorf("%d devices with room for %d readings: %v allocations, want at most %v", devices, room, got, most)
		}
	}
}
