//go:build linux && cgo

package nvidia

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callEnforcedLimit = function("nvmlDeviceGetEnforcedPowerLimit")
	callLimit         = function("nvmlDeviceGetPowerManagementLimit")
	callDefaultLimit  = function("nvmlDeviceGetPowerManagementDefaultLimit")
	callConstraints   = function("nvmlDeviceGetPowerManagementLimitConstraints")
	callMaxClocks     = variants(len(clocks), "nvmlDeviceGetMaxClockInfo")
	callComputeMode   = function("nvmlDeviceGetComputeMode")
	callPersistence   = function("nvmlDeviceGetPersistenceMode")
	callBAR1          = function("nvmlDeviceGetBAR1MemoryInfo")
	callRepair        = function("nvmlDeviceGetRepairStatus")

	callLinkGen       = function("nvmlDeviceGetCurrPcieLinkGeneration")
	callLinkWidth     = function("nvmlDeviceGetCurrPcieLinkWidth")
	callMaxLinkGen    = function("nvmlDeviceGetMaxPcieLinkGeneration")
	callGPUMaxLinkGen = function("nvmlDeviceGetGpuMaxPcieLinkGeneration")
	callMaxLinkWidth  = function("nvmlDeviceGetMaxPcieLinkWidth")

	callCompute  = function("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses")
	callGraphics = function("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses")
	callMPS      = function("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses")
)

var (
	labelEnforced  = []string{"enforced"}
	labelRequested = []string{"requested"}
	labelDefault   = []string{"default"}
	labelMin       = []string{"min"}
	labelMax       = []string{"max"}
	labelSlot      = []string{"slot"}
	labelDevice    = []string{"device"}
	labelChannel   = []string{"channel"}
	labelTPC       = []string{"tpc"}
	labelGraphics  = []string{"graphics"}
	labelMPS       = []string{"mps"}
)

// readLimits reads the limits that the operator or the board sets.
func (g *gpu) readLimits(d *collector.Device) {
	a, h := &g.asker, g.handle
	power := func(id uint32, c *call, f func() (uint32, nvml.Return), labels []string) {
		if g.seldom.has(id) {
			return
		}
		if mw, ok := ask(a, c, f); ok {
			set32(d, collector.PowerLimit, mw, milli, labels...)
		}
	}
	power(nvml.FI_DEV_POWER_CURRENT_LIMIT, callEnforcedLimit, h.GetEnforcedPowerLimit, labelEnforced)
	power(nvml.FI_DEV_POWER_REQUESTED_LIMIT, callLimit, h.GetPowerManagementLimit, labelRequested)
	power(nvml.FI_DEV_POWER_DEFAULT_LIMIT, callDefaultLimit, h.GetPowerManagementDefaultLimit, labelDefault)
	if !g.seldom.has(nvml.FI_DEV_POWER_MIN_LIMIT) || !g.seldom.has(nvml.FI_DEV_POWER_MAX_LIMIT) {
		if low, high, ok := ask2(a, callConstraints, h.GetPowerManagementLimitConstraints); ok {
			if !g.seldom.has(nvml.FI_DEV_POWER_MIN_LIMIT) {
				set32(d, collector.PowerLimit, low, milli, labelMin...)
			}
			if !g.seldom.has(nvml.FI_DEV_POWER_MAX_LIMIT) {
				set32(d, collector.PowerLimit, high, milli, labelMax...)
			}
		}
	}
	for i, c := range clocks {
		if mhz, ok := ask(a, callMaxClocks[i], func() (uint32, nvml.Return) { return h.GetMaxClockInfo(c.clock) }); ok {
			set32(d, collector.ClockMax, mhz, mega, c.labels...)
		}
	}
	g.readThresholds(d)
}

// computeModes are the values of nvmlComputeMode_t; 2, exclusive thread, was
// removed.
var computeModes = [...]struct {
	mode   nvml.ComputeMode
	labels []string
}{
	{nvml.COMPUTEMODE_DEFAULT, []string{"default"}},
	{nvml.COMPUTEMODE_PROHIBITED, []string{"prohibited"}},
	{nvml.COMPUTEMODE_EXCLUSIVE_PROCESS, []string{"exclusive_process"}},
}

// readModes reads the modes of the GPU and its pending repairs.
func (g *gpu) readModes(d *collector.Device) {
	a, h := &g.asker, g.handle
	if mode, ok := ask(a, callComputeMode, h.GetComputeMode); ok {
		known := false
		for _, m := range computeModes {
			known = known || mode == m.mode
			d.SetBool(collector.ComputeMode, mode == m.mode, m.labels...)
		}
		if !known {
			d.Set(collector.ComputeMode, 1, labelOther...)
		}
	}
	if mode, ok := ask(a, callPersistence, h.GetPersistenceMode); ok {
		d.SetBool(collector.PersistenceMode, mode == nvml.FEATURE_ENABLED)
	}
	if bar1, ok := ask(a, callBAR1, h.GetBAR1MemoryInfo); ok {
		set64(d, collector.BAR1Total, bar1.Bar1Total, one)
		set64(d, collector.BAR1Used, bar1.Bar1Used, one)
	}
	if r, ok := ask(a, callRepair, h.GetRepairStatus); ok {
		d.SetBool(collector.RepairPending, r.BChannelRepairPending != 0, labelChannel...)
		d.SetBool(collector.RepairPending, r.BTpcRepairPending != 0, labelTPC...)
	}
}

func (g *gpu) readPCIeLink(d *collector.Device) {
	a, h := &g.asker, g.handle
	read := func(c *call, f func() (int, nvml.Return), m *collector.Metric, labels []string) {
		if v, ok := ask(a, c, f); ok {
			d.Set(m, float64(v), labels...)
		}
	}
	read(callLinkGen, h.GetCurrPcieLinkGeneration, collector.PCIeGeneration, nil)
	read(callMaxLinkGen, h.GetMaxPcieLinkGeneration, collector.PCIeGenerationMax, labelSlot)
	read(callGPUMaxLinkGen, h.GetGpuMaxPcieLinkGeneration, collector.PCIeGenerationMax, labelDevice)
	read(callLinkWidth, h.GetCurrPcieLinkWidth, collector.PCIeWidth, nil)
	read(callMaxLinkWidth, h.GetMaxPcieLinkWidth, collector.PCIeWidthMax, nil)
}
