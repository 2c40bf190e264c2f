//go:build linux && cgo

package nvidia

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The measures that a hot GPU takes.
const (
	limitMaxOperating = iota
	limitSlowdown
	limitShutdown
	limitMemory
	limits
)

var labelLimits = [limits][]string{{"max_operating"}, {"slowdown"}, {"shutdown"}, {"memory_max_operating"}}

// thermal has the limits of the GPU and its memory from the slow readings.
type thermal struct {
	// offset is the distance of T.Limit between the margin's zero and the
	// measure (fields 196, 194, 193, 195; degrees, mostly negative).
	offset    [limits]float64
	hasOffset [limits]bool
	// limit is the temperature of the measure.
	limit    [limits]float64
	hasLimit [limits]bool
	// now and memory are the temperatures of this round.
	now, memory       float64
	hasNow, hasMemory bool
}

var thresholds = [...]struct {
	threshold nvml.TemperatureThresholds
	labels    []string
	limit     int // of the margin
}{
	{nvml.TEMPERATURE_THRESHOLD_SHUTDOWN, []string{"gpu", "shutdown"}, limitShutdown},
	{nvml.TEMPERATURE_THRESHOLD_SLOWDOWN, []string{"gpu", "slowdown"}, limitSlowdown},
	{nvml.TEMPERATURE_THRESHOLD_GPU_MAX, []string{"gpu", "max_operating"}, limitMaxOperating},
	{nvml.TEMPERATURE_THRESHOLD_MEM_MAX, []string{"memory", "max_operating"}, limitMemory},
}

var callThresholds = variants(len(thresholds), "nvmlDeviceGetTemperatureThreshold")

// readTemperature reads the GPU's own sensor and reports whether it was read.
func (g *gpu) readTemperature(d *collector.Device) bool {
	a, h := &g.asker, g.handle
	g.thermal.hasNow = false
	t, ok := ask(a, callTemperature, func() (uint32, nvml.Return) { return h.GetTemperature(nvml.TEMPERATURE_GPU) })
	v := float64(t)
	if !ok && a.never(callTemperature) {
		var t nvml.Temperature
		t, ok = ask(a, callTempV, func() (nvml.Temperature, nvml.Return) { return h.GetTemperatureV().V1() })
		v = float64(t.Temperature)
	}
	if !ok {
		return false
	}
	if v == math.MaxUint32 {
		d.Reject(collector.TemperatureCelsius, collector.RejectSentinel)
		return true
	}
	d.Set(collector.TemperatureCelsius, v, labelGPU...)
	g.thermal.now, g.thermal.hasNow = v, collector.TemperatureCelsius.Range.Contains(v)
	return true
}

func (g *gpu) readThresholds(d *collector.Device) {
	g.thermal.hasLimit = [limits]bool{}
	for i, t := range thresholds {
		v, ok := ask(&g.asker, callThresholds[i], func() (uint32, nvml.Return) { return g.handle.GetTemperatureThreshold(t.threshold) })
		if !ok {
			continue
		}
		set32(d, collector.TemperatureLimit, v, one, t.labels...)
		if collector.TemperatureLimit.Range.Contains(float64(v)) {
			g.thermal.limit[t.limit], g.thermal.hasLimit[t.limit] = float64(v), true
		}
	}
}

// readMargins sets the distance to each measure. The temperature of the memory is
// among the readings of d, where it is known.
func (g *gpu) readMargins(d *collector.Device) {
	t := &g.thermal
	t.hasMemory = false
	for _, r := range d.Readings {
		if r.Metric == collector.TemperatureCelsius && r.Labels[0] == labelMemory[0] {
			t.memory, t.hasMemory = r.Value, true
		}
	}
	m, ok := ask(&g.asker, callMargin, g.handle.GetMarginTemperature)
	if !ok && !g.refused[callMargin.index] {
		return
	}
	for i, labels := range labelLimits {
		if v, known := t.margin(i, float64(m.MarginTemperature), ok); known {
			d.Set(collector.TemperatureMargin, v, labels...)
		}
	}
}

// margin is the number of degrees left to the measure. T.Limit, where the GPU has it,
// counts down to the point at which clocks are lowered for the GPU or for the memory,
// whichever is nearer; the other measures are an offset below zero. Of the memory it is
// the least that may be left, so its own limit and temperature are better.
func (t *thermal) margin(limit int, tLimit float64, hasTLimit bool) (float64, bool) {
	now, hasNow := t.now, t.hasNow
	if limit == limitMemory {
		now, hasNow = t.memory, t.hasMemory
	}
	absolute := t.hasLimit[limit] && hasNow
	if hasTLimit && t.hasOffset[limit] && (limit != limitMemory || !absolute) {
		return tLimit - t.offset[limit], true
	}
	return t.limit[limit] - now, absolute
}
