//go:build linux && cgo

package nvidia

import (
	"cmp"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// number is a function that returns one number, which is a reading.
type number struct {
	call   *call
	get    func(nvml.Device) (uint32, nvml.Return)
	metric *collector.Metric
	unit   unit
	labels []string
	// instead is a field with the same number: the function is called only where the
	// GPU has no such field. 0 is none.
	instead uint32
}

func numberOf(name string, get func(nvml.Device) (uint32, nvml.Return), m *collector.Metric, u unit, labels ...string) number {
	return number{call: function(name), get: get, metric: m, unit: u, labels: labels}
}

// or returns n for GPUs without a field.
func (n number) or(field uint32) number {
	n.instead = field
	return n
}

// readNumbers reads the numbers that no field of b has. It reports whether one was
// read.
func (g *gpu) readNumbers(d *collector.Device, b *batch, list []number) (read bool) {
	for i := range list {
		n := &list[i]
		if n.instead != 0 && b.has(n.instead) {
			continue
		}
		if v, ok := ask(&g.asker, n.call, func() (uint32, nvml.Return) { return n.get(g.handle) }); ok {
			set32(d, n.metric, v, n.unit, n.labels...)
			read = true
		}
	}
	return read
}

// engines do video and images.
var engines = []number{
	numberOf("nvmlDeviceGetEncoderUtilization", func(h nvml.Device) (uint32, nvml.Return) {
		v, _, ret := h.GetEncoderUtilization()
		return v, ret
	}, collector.UtilizationRatio, percent, "encoder"),
	numberOf("nvmlDeviceGetDecoderUtilization", func(h nvml.Device) (uint32, nvml.Return) {
		v, _, ret := h.GetDecoderUtilization()
		return v, ret
	}, collector.UtilizationRatio, percent, "decoder"),
	numberOf("nvmlDeviceGetJpgUtilization", func(h nvml.Device) (uint32, nvml.Return) {
		v, _, ret := h.GetJpgUtilization()
		return v, ret
	}, collector.UtilizationRatio, percent, "jpeg"),
	numberOf("nvmlDeviceGetOfaUtilization", func(h nvml.Device) (uint32, nvml.Return) {
		v, _, ret := h.GetOfaUtilization()
		return v, ret
	}, collector.UtilizationRatio, percent, "ofa"),
}

var power = []number{
	numberOf("nvmlDeviceGetPowerUsage", nvml.Device.GetPowerUsage, collector.PowerWatts, milli).or(nvml.FI_DEV_POWER_INSTANT),
}

// clocks are the frequencies now, maxima the highest possible.
var clocks, maxima = func() (now, most []number) {
	for _, c := range []struct {
		clock nvml.ClockType
		label string
	}{{nvml.CLOCK_GRAPHICS, "graphics"}, {nvml.CLOCK_SM, "sm"}, {nvml.CLOCK_MEM, "memory"}, {nvml.CLOCK_VIDEO, "video"}} {
		now = append(now, numberOf("nvmlDeviceGetClockInfo", func(h nvml.Device) (uint32, nvml.Return) {
			return h.GetClockInfo(c.clock)
		}, collector.ClockHertz, mega, c.label))
		most = append(most, numberOf("nvmlDeviceGetMaxClockInfo", func(h nvml.Device) (uint32, nvml.Return) {
			return h.GetMaxClockInfo(c.clock)
		}, collector.ClockMax, mega, c.label))
	}
	return now, most
}()

// powerLimits are set by the operator or the board.
var powerLimits = []number{
	numberOf("nvmlDeviceGetEnforcedPowerLimit", nvml.Device.GetEnforcedPowerLimit, collector.PowerLimit, milli, "enforced").or(nvml.FI_DEV_POWER_CURRENT_LIMIT),
	numberOf("nvmlDeviceGetPowerManagementLimit", nvml.Device.GetPowerManagementLimit, collector.PowerLimit, milli, "requested").or(nvml.FI_DEV_POWER_REQUESTED_LIMIT),
	numberOf("nvmlDeviceGetPowerManagementDefaultLimit", nvml.Device.GetPowerManagementDefaultLimit, collector.PowerLimit, milli, "default").or(nvml.FI_DEV_POWER_DEFAULT_LIMIT),
	numberOf("nvmlDeviceGetPowerManagementLimitConstraints", func(h nvml.Device) (uint32, nvml.Return) {
		low, _, ret := h.GetPowerManagementLimitConstraints()
		return low, ret
	}, collector.PowerLimit, milli, "min").or(nvml.FI_DEV_POWER_MIN_LIMIT),
	numberOf("nvmlDeviceGetPowerManagementLimitConstraints", func(h nvml.Device) (uint32, nvml.Return) {
		_, high, ret := h.GetPowerManagementLimitConstraints()
		return high, ret
	}, collector.PowerLimit, milli, "max").or(nvml.FI_DEV_POWER_MAX_LIMIT),
}

// pcieLink is the link to the slot, pcieMaxima the most that it can be.
var pcieLink = []number{
	numberOf("nvmlDeviceGetCurrPcieLinkGeneration", whole(nvml.Device.GetCurrPcieLinkGeneration), collector.PCIeGeneration, one),
	numberOf("nvmlDeviceGetCurrPcieLinkWidth", whole(nvml.Device.GetCurrPcieLinkWidth), collector.PCIeWidth, one),
}

var pcieMaxima = []number{
	numberOf("nvmlDeviceGetMaxPcieLinkGeneration", whole(nvml.Device.GetMaxPcieLinkGeneration), collector.PCIeGenerationMax, one, "slot"),
	numberOf("nvmlDeviceGetGpuMaxPcieLinkGeneration", whole(nvml.Device.GetGpuMaxPcieLinkGeneration), collector.PCIeGenerationMax, one, "device"),
	numberOf("nvmlDeviceGetMaxPcieLinkWidth", whole(nvml.Device.GetMaxPcieLinkWidth), collector.PCIeWidthMax, one, "device"),
}

// readSlot sets the lanes that the GPU and its slot have together: NVML's maximum is the
// GPU's and ignores a narrower slot.
func (g *gpu) readSlot(d *collector.Device) {
	now, _ := find(d.Readings, collector.PCIeWidth, nil)
	own, _ := find(d.Readings, collector.PCIeWidthMax, []string{"device"})
	g.widest = max(g.widest, now)
	if slot := min(own, cmp.Or(g.identity.portLanes, g.widest)); slot > 0 {
		d.Set(collector.PCIeWidthMax, slot, "slot")
	}
}

// whole converts a function that returns an int, which has no mark for "not
// available": a number as large as the mark is out of range.
func whole(get func(nvml.Device) (int, nvml.Return)) func(nvml.Device) (uint32, nvml.Return) {
	return func(h nvml.Device) (uint32, nvml.Return) {
		v, ret := get(h)
		return uint32(min(v, math.MaxInt32)), ret
	}
}
