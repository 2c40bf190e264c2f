package status

import (
	"math"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The history is kept also while no browser shows the page: after a fault, the
// minutes before it are needed. A device costs under 1 KiB, and a sample every ten
// seconds a few microseconds.
const (
	step       = 10 * time.Second
	samples    = 60
	maxDevices = 512
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

// read returns the values of a device. Utilization is that of the first engine that
// is known, as in an allocation; temperature that of the GPU, else of the hottest
// sensor.
func read(d *collector.Device) (v values, l limits) {
	v, l = unknown, limits{nan, nan, nan}
	engine, sensor := 3, ""
	for i := range d.Readings {
		r := &d.Readings[i]
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

// history has the values of the last ten minutes of each device, in slots of step.
type history struct {
	start time.Time

	mu      sync.Mutex
	tick    int
	devices map[string]*ring
}

type ring struct {
	at   [samples]values
	last int // tick of the last sample with a value
}

// record adds a sample of every device. Slots between two samples are unknown.
func (h *history) record(s *collector.Snapshot, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.devices == nil {
		h.devices, h.start = map[string]*ring{}, now
	}
	due := int(now.Sub(h.start)/step) + 1
	for h.tick = max(h.tick, due-samples); h.tick < due; {
		h.tick++
		for _, r := range h.devices {
			r.at[h.tick%samples] = unknown
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		r := h.devices[d.ID]
		if r == nil {
			if len(h.devices) >= maxDevices {
				continue
			}
			r = &ring{}
			for i := range r.at {
				r.at[i] = unknown
			}
			h.devices[d.ID] = r
		}
		r.at[h.tick%samples], _ = read(d)
		r.last = h.tick
	}
	for id, r := range h.devices {
		if h.tick-r.last >= samples {
			delete(h.devices, id)
		}
	}
}

// of returns the samples of a value, oldest first.
func (h *history) of(device string, value int) []float32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.devices[device]
	if r == nil {
		return nil
	}
	out := make([]float32, samples)
	for i := range out {
		out[i] = r.at[(h.tick+1+i)%samples][value]
	}
	return out
}
