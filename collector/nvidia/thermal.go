//go:build linux && cgo

package nvidia

import (
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The measures that a hot GPU takes.
const (
	limitMaxOperating = iota
	limitSlowdown
	limitShutdown
	limitMemory
)

// measures are the labels of each measure's margin and of the limit and the
// temperature that it compares.
var measures = [...]struct{ margin, limit, sensor []string }{
	limitMaxOperating: {[]string{"max_operating"}, []string{"gpu", "max_operating"}, labelGPU},
	limitSlowdown:     {[]string{"slowdown"}, []string{"gpu", "slowdown"}, labelGPU},
	limitShutdown:     {[]string{"shutdown"}, []string{"gpu", "shutdown"}, labelGPU},
	limitMemory:       {[]string{"memory_max_operating"}, []string{"memory", "max_operating"}, labelMemory},
}

// temperatureLimits are read in every slow round.
var temperatureLimits = func() (list []number) {
	for _, t := range []struct {
		threshold nvml.TemperatureThresholds
		measure   int
	}{
		{nvml.TEMPERATURE_THRESHOLD_SHUTDOWN, limitShutdown},
		{nvml.TEMPERATURE_THRESHOLD_SLOWDOWN, limitSlowdown},
		{nvml.TEMPERATURE_THRESHOLD_GPU_MAX, limitMaxOperating},
		{nvml.TEMPERATURE_THRESHOLD_MEM_MAX, limitMemory},
	} {
		list = append(list, numberOf("nvmlDeviceGetTemperatureThreshold", func(h nvml.Device) (uint32, nvml.Return) {
			return h.GetTemperatureThreshold(t.threshold)
		}, collector.TemperatureLimit, one, measures[t.measure].limit...))
	}
	return list
}()

// readTemperature reads the GPU's own sensor and reports whether it was read.
func (g *gpu) readTemperature(d *collector.Device) bool {
	a, h := &g.asker, g.handle
	t, ok := ask(a, callTemperature, func() (uint32, nvml.Return) { return h.GetTemperature(nvml.TEMPERATURE_GPU) })
	v := float64(t)
	if !ok && a.never(callTemperature) {
		var t nvml.Temperature
		t, ok = ask(a, callTempV, func() (nvml.Temperature, nvml.Return) { return h.GetTemperatureV().V1() })
		v = float64(t.Temperature)
	}
	switch {
	case !ok:
	case v == math.MaxUint32:
		d.Reject(collector.TemperatureCelsius, collector.RejectSentinel)
	default:
		d.Set(collector.TemperatureCelsius, v, labelGPU...)
	}
	return ok
}

// readMargins sets the distance to each measure. The temperatures are among the
// readings of d, and the limits among the slow readings.
func (g *gpu) readMargins(d *collector.Device) {
	m, ok := ask(&g.asker, callMargin, g.handle.GetMarginTemperature)
	if !ok && !g.refused[callMargin.index] {
		return
	}
	for i := range measures {
		if v, known := g.margin(d, i, float64(m.MarginTemperature), ok); known {
			d.Set(collector.TemperatureMargin, v, measures[i].margin...)
		}
	}
}

// margin is the number of degrees left to the measure. T.Limit, where the GPU has it,
// counts down to the point at which clocks are lowered for the GPU or for the memory,
// whichever is nearer; the other measures are an offset below zero. Of the memory it is
// the least that may be left, so its own limit and temperature are better.
func (g *gpu) margin(d *collector.Device, measure int, tLimit float64, hasTLimit bool) (float64, bool) {
	m := &measures[measure]
	now, hasNow := find(d.Readings, collector.TemperatureCelsius, m.sensor)
	limit, hasLimit := find(g.kept, collector.TemperatureLimit, m.limit)
	offset, hasOffset := g.offsets[measure]
	absolute := hasNow && hasLimit
	if hasTLimit && hasOffset && (measure != limitMemory || !absolute) {
		return tLimit - offset, true
	}
	return limit - now, absolute
}

// find returns the value of a reading.
func find(list []collector.Reading, m *collector.Metric, labels []string) (float64, bool) {
	i := slices.IndexFunc(list, func(r collector.Reading) bool { return r.Metric == m && slices.Equal(r.Labels, labels) })
	if i < 0 {
		return 0, false
	}
	return list[i].Value, true
}
