//go:build linux && cgo

package nvidia

import (
	"math"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The structs of nvmlDeviceGetGpuFabricInfoV are tried from the newest. A
// driver rejects a version that it does not know.
var (
	callFabricV3 = function("nvmlDeviceGetGpuFabricInfoV")
	callFabricV2 = function("nvmlDeviceGetGpuFabricInfoV")
	callFabric   = function("nvmlDeviceGetGpuFabricInfo")
)

// The names of NVML_GPU_FABRIC_STATE_* and NVML_GPU_FABRIC_HEALTH_SUMMARY_* from
// 1; 0 is not supported.
var (
	fabricStates    = [][]string{{"not_started"}, {"in_progress"}, {"completed"}}
	fabricSummaries = [][]string{{"healthy"}, {"unhealthy"}, {"limited_capacity"}}
)

var fabricFaults = [...]struct {
	shift  uint
	labels []string
}{
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW, []string{"degraded_bandwidth"}},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY, []string{"route_recovery"}},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY, []string{"route_unhealthy"}},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY, []string{"access_timeout_recovery"}},
}

// fabricKnown are the bits of the mask that are decoded, up to the state of the global
// fabric manager.
const fabricKnown = 1<<(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_GFM_STATE+2) - 1

var (
	labelMisconfigured = []string{"incorrect_configuration"}
	labelNoManager     = []string{"global_fabric_manager_disconnected"}
	labelSuccess       = []string{"success"}
)

// askFabric reads the fabric info in the newest version that the driver
// supports.
func (g *gpu) askFabric() (nvml.GpuFabricInfo_v3, bool) {
	a, h := &g.asker, g.handle
	if v3, ok := ask(a, callFabricV3, func() (nvml.GpuFabricInfo_v3, nvml.Return) { return h.GetGpuFabricInfoV().V3() }); ok {
		return v3, true
	}
	if !a.never(callFabricV3) {
		return nvml.GpuFabricInfo_v3{}, false
	}
	if v2, ok := ask(a, callFabricV2, func() (nvml.GpuFabricInfo_v2, nvml.Return) { return h.GetGpuFabricInfoV().V2() }); ok {
		return nvml.GpuFabricInfo_v3{
			ClusterUuid: v2.ClusterUuid, Status: v2.Status, CliqueId: v2.CliqueId, State: v2.State, HealthMask: v2.HealthMask,
		}, true
	}
	if !a.never(callFabricV2) {
		return nvml.GpuFabricInfo_v3{}, false
	}
	v1, ok := ask(a, callFabric, h.GetGpuFabricInfo)
	return nvml.GpuFabricInfo_v3{ClusterUuid: v1.ClusterUuid, Status: v1.Status, CliqueId: v1.CliqueId, State: v1.State}, ok
}

// readFabric reads the state of the GPU in the NVLink fabric.
func (g *gpu) readFabric(d *collector.Device) {
	info, ok := g.askFabric()
	g.links.fabric = ok && info.State != nvml.GPU_FABRIC_STATE_NOT_SUPPORTED
	if !g.links.fabric {
		return
	}
	setState(d, collector.FabricState, info.State, fabricStates)
	setState(d, collector.FabricHealth, info.HealthSummary, fabricSummaries)
	if info.State == nvml.GPU_FABRIC_STATE_COMPLETED {
		// The status of an unfinished registration has no meaning.
		ret := nvml.Return(info.Status)
		d.SetBool(collector.FabricStatus, ret == nvml.SUCCESS, labelSuccess...)
		if ret != nvml.SUCCESS {
			d.Set(collector.FabricStatus, 1, code(ret))
		} else if info.ClusterUuid != [16]uint8{} {
			d.Set(collector.FabricInfo, 1, uuidOf(info.ClusterUuid), strconv.FormatUint(uint64(info.CliqueId), 10))
		}
	}
	readFabricMask(d, info.HealthMask)
}

// readFabricMask sets the parts of the healthMask that are reported.
func readFabricMask(d *collector.Device, mask uint32) {
	if mask == math.MaxUint32 {
		d.Reject(collector.FabricFault, collector.RejectSentinel) // a mask of ones is no mask
		return
	}
	for _, f := range fabricFaults {
		if fault, known := faultBit(mask, f.shift); known {
			d.SetBool(collector.FabricFault, fault, f.labels...)
		}
	}
	if fault, known := misconfigured(mask); known {
		d.SetBool(collector.FabricFault, fault, labelMisconfigured...)
	}
	if assigned, known := faultBit(mask, nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_PARTITION_ASSIGNED); known {
		d.SetBool(collector.FabricPartition, assigned)
	}
	// Of this part 1 is good, so that a fault is its opposite.
	if connected, known := faultBit(mask, nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_GFM_STATE); known {
		d.SetBool(collector.FabricFault, !connected, labelNoManager...)
	}
	if mask&^fabricKnown != 0 {
		d.Set(collector.FabricFault, 1, labelOther...)
	}
}

// setState sets one series for each name, the first of which is value 1. 0 is not
// supported and 255 a mark of some layers below for no value. Any other value is
// newer than this program and becomes the series other.
func setState(d *collector.Device, m *collector.Metric, value uint8, names [][]string) {
	switch value {
	case 0:
		return
	case math.MaxUint8:
		d.Reject(m, collector.RejectSentinel)
		return
	}
	for i, labels := range names {
		d.SetBool(m, i+1 == int(value), labels...)
	}
	if int(value) > len(names) {
		d.Set(m, 1, labelOther...)
	}
}
