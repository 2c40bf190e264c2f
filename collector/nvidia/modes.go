//go:build linux && cgo

package nvidia

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callComputeMode = function("nvmlDeviceGetComputeMode")
	callPersistence = function("nvmlDeviceGetPersistenceMode")
	callBAR1        = function("nvmlDeviceGetBAR1MemoryInfo")
	callRepair      = function("nvmlDeviceGetRepairStatus")
	callECCMode     = function("nvmlDeviceGetEccMode")
)

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

// readModes reads the modes of the GPU, and the memory that the host can map.
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
	if current, pending, ok := ask2(a, callECCMode, h.GetEccMode); ok {
		d.SetBool(collector.ECCMode, current == nvml.FEATURE_ENABLED, labelCurrent...)
		d.SetBool(collector.ECCMode, pending == nvml.FEATURE_ENABLED, labelPending...)
	}
}

// readRepairs reads the pending repairs.
func (g *gpu) readRepairs(d *collector.Device) {
	if r, ok := ask(&g.asker, callRepair, g.handle.GetRepairStatus); ok {
		d.SetBool(collector.RepairPending, r.BChannelRepairPending != 0, "channel")
		d.SetBool(collector.RepairPending, r.BTpcRepairPending != 0, "tpc")
	}
}
