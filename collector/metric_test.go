package collector

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// TestBoundsKeepTheRound: a source that returns its readings again still has all of them.
func TestBoundsKeepTheRound(t *testing.T) {
	var kept Device
	kept.Set(PowerWatts, 588)
	kept.Set(PowerLimit, 70, "max")
	d := kept
	d.checkBounds()
	if len(kept.Readings) != 2 || kept.Readings[0].Metric != PowerWatts || kept.Readings[1].Metric != PowerLimit {
		t.Errorf("the source has %v", kept.Readings)
	}
}

// TestBounds: a value that contradicts the device's own limit is not served, and a reading
// names its family.
func TestBounds(t *testing.T) {
	for watts, ok := range map[float64]bool{70: true, 140: true, 588: false} {
		gpu := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia"}
		gpu.Set(PowerWatts, watts)
		gpu.Set(PowerLimit, 70, "max")
		gpu.Set(PowerLimit, 35, "min")
		synctest.Test(t, func(t *testing.T) {
			s := NewSampler(DefaultSettings())
			s.Add(newFake("nvidia", gpu), Cover{Class: GPU, Vendor: "nvidia"})
			run(t, s)
			tick()
			if ok {
				expect(t, s, []*Metric{PowerWatts, ReadingImplausible}, fmt.Sprintf("power_watts{GPU-a} %v", watts))
			} else {
				expect(t, s, []*Metric{PowerWatts, ReadingImplausible}, "device_reading_implausible{GPU-a,accel_power_watts} 1")
			}
		})
	}
}
