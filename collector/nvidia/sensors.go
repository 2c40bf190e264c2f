//go:build linux && cgo

package nvidia

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callUtilization = function("nvmlDeviceGetUtilizationRates")
	callTemperature = function("nvmlDeviceGetTemperature")
	callTempV       = function("nvmlDeviceGetTemperatureV")
	callMargin      = function("nvmlDeviceGetMarginTemperature")
	callEnergy      = function("nvmlDeviceGetTotalEnergyConsumption")
	callReplays     = function("nvmlDeviceGetPcieReplayCounter")
	callEvents      = function("nvmlDeviceGetCurrentClocksEventReasons")
	callThrottle    = function("nvmlDeviceGetCurrentClocksThrottleReasons")
	callPState      = function("nvmlDeviceGetPerformanceState")
	callMemoryV2    = function("nvmlDeviceGetMemoryInfo_v2")
	callMemory      = function("nvmlDeviceGetMemoryInfo")
)

// throttleReasons are the bits that reduce the clocks. The bits of R615, from
// firstNewReason on, and the rest of the mask have a series only while they are set.
var throttleReasons = [...]struct {
	bit    uint64
	labels []string
}{
	{nvml.ClocksThrottleReasonSwPowerCap, []string{"sw_power_cap"}},
	{nvml.ClocksThrottleReasonHwSlowdown, []string{"hw_slowdown"}},
	{nvml.ClocksThrottleReasonSyncBoost, []string{"sync_boost"}},
	{nvml.ClocksThrottleReasonSwThermalSlowdown, []string{"sw_thermal"}},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, []string{"hw_thermal"}},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, []string{"hw_power_brake"}},
	{nvml.ClocksEventReasonBoardLimit, []string{"board_limit"}},
	{nvml.ClocksEventReasonReliability, []string{"reliability"}},
}

const (
	firstNewReason = 6
	// noThrottle are the bits of idleness and of the operator's settings.
	noThrottle = nvml.ClocksThrottleReasonGpuIdle | nvml.ClocksThrottleReasonApplicationsClocksSetting | nvml.ClocksThrottleReasonDisplayClockSetting
)

var labelGPU = []string{"gpu"}

// readFast reads the values of every round. It reports whether any of the GPU's
// vital values (memory, temperature, power, utilization) was read.
func (g *gpu) readFast(d *collector.Device, now time.Time) bool {
	a, h := &g.asker, g.handle
	alive := readMemory(d, a, h)
	u, ok := ask(a, callUtilization, h.GetUtilizationRates)
	if ok {
		set32(d, collector.UtilizationRatio, u.Gpu, percent, labelCompute...)
		set32(d, collector.UtilizationRatio, u.Memory, percent, labelMemory...)
	}
	alive = alive || ok
	alive = g.readTemperature(d) || alive
	g.readFields(d, now)
	alive = g.readNumbers(d, g.fast, power) || alive
	g.readThrottle(d)
	return alive
}

// readFields reads the fast batch and the paced batches that are due, and the
// replacements of missing fields.
func (g *gpu) readFields(d *collector.Device, now time.Time) {
	list := append(make([]reading, 0, 1+len(pacedFields)), reading{g.fast, d})
	var fresh [len(pacedFields)]*collector.Device // nil where they are not due
	for i := range g.paced {
		if p := &g.paced[i]; g.due(&p.next, pacedFields[i].every, now) {
			fresh[i] = new(collector.Device)
			list = append(list, reading{p.batch, fresh[i]})
		}
	}
	g.readBatches(nil, list...)
	if !g.thermalAsked && !g.fast.off && g.fatal == nvml.SUCCESS {
		g.thermalAsked = true
		if !g.fast.has(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN) && !g.fast.has(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN) {
			g.fast.add(thermalPolicy)
		}
	}
	for i := range g.paced {
		p := &g.paced[i]
		if k := fresh[i]; k != nil {
			pacedFields[i].more(g, p.batch, k)
			p.kept, d.Rejects = k.Readings, append(d.Rejects, k.Rejects...)
		}
		d.Readings = append(d.Readings, p.kept...)
	}
}

// pace is the state of an entry of pacedFields.
type pace struct {
	*batch
	next time.Time
	// kept are the last readings, which are repeated until next.
	kept []collector.Reading
}

// readEnergy reads the energy of a GPU without the field.
func (g *gpu) readEnergy(b *batch, d *collector.Device) {
	if b.has(nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION) {
		return
	}
	if mj, ok := ask(&g.asker, callEnergy, g.handle.GetTotalEnergyConsumption); ok {
		set64(d, collector.EnergyJoules, mj, milli)
	}
}

// readSteady reads what is read as often as the PCIe counters.
func (g *gpu) readSteady(b *batch, d *collector.Device) {
	a, h := &g.asker, g.handle
	if !b.has(nvml.FI_DEV_PCIE_REPLAY_COUNTER) {
		if n, ok := ask(a, callReplays, h.GetPcieReplayCounter); ok {
			d.Set(collector.PCIeReplays, float64(n))
		}
	}
	g.readNumbers(d, nil, clocks)
	if p, ok := ask(a, callPState, h.GetPerformanceState); ok {
		if p == nvml.PSTATE_UNKNOWN {
			d.Reject(collector.PerformanceState, collector.RejectSentinel)
		} else {
			d.Set(collector.PerformanceState, float64(p))
		}
	}
}

func (g *gpu) readThrottle(d *collector.Device) {
	a, h := &g.asker, g.handle
	reasons, ok := ask(a, callEvents, h.GetCurrentClocksEventReasons)
	if !ok {
		if reasons, ok = ask(a, callThrottle, h.GetCurrentClocksThrottleReasons); !ok {
			return
		}
	}
	if _, mark := unsigned(reasons, math.MaxUint64); mark != "" {
		d.Reject(collector.ThrottleActive, mark) // a mask of ones is no mask
		return
	}
	rest := reasons &^ noThrottle
	for i, r := range throttleReasons {
		if active := reasons&r.bit != 0; active || i < firstNewReason {
			d.SetBool(collector.ThrottleActive, active, r.labels...)
		}
		rest &^= r.bit
	}
	if rest != 0 {
		d.Set(collector.ThrottleActive, 1, labelOther...)
	}
}

// readMemory reads the memory of a GPU or MIG device. All MIG devices of a GPU
// instance return the memory that they share.
func readMemory(d *collector.Device, a *asker, h nvml.Device) bool {
	if m, ok := ask(a, callMemoryV2, h.GetMemoryInfo_v2); ok {
		set64(d, collector.MemoryTotal, m.Total, one)
		set64(d, collector.MemoryUsed, m.Used, one)
		set64(d, collector.MemoryFree, m.Free, one)
		set64(d, collector.MemoryReserved, m.Reserved, one)
		return true
	}
	if !a.never(callMemoryV2) {
		return false
	}
	m, ok := ask(a, callMemory, h.GetMemoryInfo)
	if ok {
		set64(d, collector.MemoryTotal, m.Total, one)
		set64(d, collector.MemoryUsed, m.Used, one)
		set64(d, collector.MemoryFree, m.Free, one)
	}
	return ok
}
