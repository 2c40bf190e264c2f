package status

import (
	"math"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/status/history"
)

// A line of the last ten minutes has a sample for each step.
const (
	step    = 10 * time.Second
	samples = int(history.Length / step)
)

// The values of a device that have a history.
const (
	utilization = iota // 0 to 1
	memory             // bytes
	temperature        // °C
	power              // watts
	numberOfValues
)

// values are the latest values of a device, NaN for an unknown value.
type values [numberOfValues]float32

// limits are the upper ends of the scales, NaN where there is none.
type limits struct{ memory, temperature, power float32 }

var (
	nan     = float32(math.NaN())
	unknown = values{nan, nan, nan, nan}
)

func known(v float32) bool { return v == v } // NaN is not equal to itself

// read returns the values in the readings of a device: the utilization of the first engine
// that is known, as in an allocation, and the temperature of the GPU, else of the hottest
// sensor.
func read(readings []collector.Reading) (v values, l limits) {
	v, l = unknown, limits{nan, nan, nan}
	engine, sensor := 3, ""
	for i := range readings {
		r := &readings[i]
		x, label := float32(r.Value), ""
		if len(r.Labels) > 0 {
			label = r.Labels[0]
		}
		switch r.Metric {
		case collector.UtilizationRatio:
			if label == "compute" {
				v[utilization], engine = x, 0
			}
		case collector.ActivityRatio:
			rank := map[string]int{"graphics": 1, "sm": 2}[label]
			if rank > 0 && rank < engine {
				v[utilization], engine = x, rank
			}
		case collector.MemoryUsed:
			v[memory] = x
		case collector.MemoryTotal:
			l.memory = x
		case collector.PowerWatts:
			v[power] = x
		case collector.PowerLimit:
			if label == "enforced" {
				l.power = x
			}
		case collector.TemperatureCelsius:
			if label == "gpu" || sensor != "gpu" && !(x <= v[temperature]) {
				v[temperature], sensor = x, label
			}
		case collector.TemperatureLimit:
			if len(r.Labels) > 1 && label == "gpu" && r.Labels[1] == "slowdown" {
				l.temperature = x
			}
		}
	}
	return v, l
}

// samplesOf returns the values of the last ten minutes of each device, in slots of step,
// the oldest first.
func samplesOf(ring *history.Ring) map[string]*[samples]values {
	rounds := map[int64]map[string]values{}
	last := int64(0)
	for at, devices := range ring.Rounds() {
		slot := at.UnixNano() / int64(step)
		if last = max(last, slot); rounds[slot] != nil {
			continue
		}
		rounds[slot] = map[string]values{}
		for id, readings := range devices {
			rounds[slot][id], _ = read(readings)
		}
	}
	out := map[string]*[samples]values{}
	for slot, devices := range rounds {
		if slot <= last-int64(samples) {
			continue
		}
		for id, v := range devices {
			if out[id] == nil {
				out[id] = &[samples]values{}
				for i := range out[id] {
					out[id][i] = unknown
				}
			}
			out[id][int64(samples)-1-(last-slot)] = v
		}
	}
	return out
}

// line returns the samples of a value, nil for a device without any.
func line(of *[samples]values, value int) []float32 {
	if of == nil {
		return nil
	}
	out := make([]float32, samples)
	for i := range out {
		out[i] = of[i][value]
	}
	return out
}
