package collector

import (
	"fmt"
	"strings"
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
	for name, c := range map[string]struct {
		metric *Metric
		label  string
		value  float64
		ok     bool
	}{
		"power":                    {PowerWatts, "", 140, true},
		"power, frozen":            {PowerWatts, "", 588, false},
		"memory":                   {MemoryUsed, "", 16e9, true},
		"more memory than it has":  {MemoryUsed, "", 17e9, false},
		"clock above its maximum":  {ClockHertz, "sm", 1.7e9, true},
		"impossible clock":         {ClockHertz, "sm", 42e9, false},
		"another clock":            {ClockHertz, "memory", 5e9, true},
		"too hot":                  {TemperatureCelsius, "gpu", 99, true},
		"impossible temperature":   {TemperatureCelsius, "gpu", 199, false},
		"a sensor without a limit": {TemperatureCelsius, "memory", 199, true},
	} {
		gpu := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia"}
		var labels []string
		if c.label != "" {
			labels = []string{c.label}
		}
		gpu.Set(c.metric, c.value, labels...)
		gpu.Set(PowerLimit, 35, "min")
		gpu.Set(PowerLimit, 70, "max")
		gpu.Set(MemoryTotal, 16e9)
		gpu.Set(ClockMax, 1.59e9, "sm")
		gpu.Set(TemperatureLimit, 96, "gpu", "shutdown")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSampler(DefaultSettings())
				s.Add(newFake("nvidia", gpu), Cover{Class: GPU, Vendor: "nvidia"})
				run(t, s)
				tick()
				if c.ok {
					expect(t, s, []*Metric{c.metric, ReadingImplausible}, fmt.Sprintf("%s{GPU-a%s} %v", strings.TrimPrefix(c.metric.Name, "accel_"), strings.Join(append([]string{""}, labels...), ","), c.value))
				} else {
					expect(t, s, []*Metric{c.metric, ReadingImplausible}, "device_reading_implausible{GPU-a,"+c.metric.Name+"} 1")
				}
			})
		})
	}
}
