//go:build linux && cgo

package nvidia

import (
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

var fabricStates = [...]struct {
	state  uint8
	labels []string
}{
	{nvml.GPU_FABRIC_STATE_NOT_STARTED, []string{"not_started"}},
	{nvml.GPU_FABRIC_STATE_IN_PROGRESS, []string{"in_progress"}},
	{nvml.GPU_FABRIC_STATE_COMPLETED, []string{"completed"}},
}

var fabricFaults = [...]struct {
	shift  uint
	labels []string
}{
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW, []string{"degraded_bandwidth"}},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY, []string{"route_recovery"}},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY, []string{"route_unhealthy"}},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY, []string{"access_timeout_recovery"}},
}

var labelMisconfigured = []string{"incorrect_configuration"}

// askFabric reads the fabric info in the newest version that the driver
// supports.
func (g *gpu) askFabric() (nvml.GpuFabricInfo_v3, bool) {
	a, h := &g.asker, g.handle
	if v3, ok := ask(a, callFabricV3, func() (nvml.GpuFabricInfo_v3, nvml.Return) { return h.GetGpuFabricInfoV().V3() }); ok {
		return v3, true
	}
	if !a.refused[callFabricV3.index] {
		return nvml.GpuFabricInfo_v3{}, false
	}
	if v2, ok := ask(a, callFabricV2, func() (nvml.GpuFabricInfo_v2, nvml.Return) { return h.GetGpuFabricInfoV().V2() }); ok {
		return nvml.GpuFabricInfo_v3{
			ClusterUuid: v2.ClusterUuid, Status: v2.Status, CliqueId: v2.CliqueId, State: v2.State, HealthMask: v2.HealthMask,
		}, true
	}
	if !a.refused[callFabricV2.index] {
		return nvml.GpuFabricInfo_v3{}, false
	}
	v1, ok := ask(a, callFabric, h.GetGpuFabricInfo)
	return nvml.GpuFabricInfo_v3{ClusterUuid: v1.ClusterUuid, Status: v1.Status, CliqueId: v1.CliqueId, State: v1.State}, ok
}

// readFabric reads the state of the GPU in the NVLink fabric.
func (g *gpu) readFabric(d *collector.Device) {
	info, ok := g.askFabric()
	if !ok || info.State == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED {
		return
	}
	if info.State > nvml.GPU_FABRIC_STATE_COMPLETED {
		d.Reject(collector.FabricState, collector.RejectRange)
		return
	}
	for _, s := range fabricStates {
		d.SetBool(collector.FabricState, info.State == s.state, s.labels...)
	}
	if info.State == nvml.GPU_FABRIC_STATE_COMPLETED && nvml.Return(info.Status) == nvml.SUCCESS {
		d.Set(collector.FabricInfo, 1, uuidOf(info.ClusterUuid), strconv.FormatUint(uint64(info.CliqueId), 10))
	}
	for _, f := range fabricFaults {
		if fault, known := faultBit(info.HealthMask, f.shift); known {
			d.SetBool(collector.FabricFault, fault, f.labels...)
		}
	}
	if fault, known := misconfigured(info.HealthMask); known {
		d.SetBool(collector.FabricFault, fault, labelMisconfigured...)
	}
}
