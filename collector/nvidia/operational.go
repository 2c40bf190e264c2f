//go:build linux && cgo

package nvidia

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// GPU Operational Events, which drivers from R615 have.
var (
	callOperational  = function("nvmlEventSetRegisterGpuOperationalEvents_v1")
	callSetWait3     = define(call{name: "nvmlEventSetWait_v3", quiet: nvml.ERROR_TIMEOUT})
	callContextCount = function("nvmlEventSetGetContextCount_v1")
	callContextInfo  = function("nvmlEventSetGetContextInfo_v1")
	callContextXid   = function("nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1")
)

// maxContexts bounds the contexts of an event that are read.
const maxContexts = 16

// operationalSubs are the Sub of an event by nvmlOperationalEventSeverity_t.
var operationalSubs = map[uint32]string{
	uint32(nvml.OPERATIONAL_EVENT_SEVERITY_INFORMATIONAL): collector.SubInformational,
	uint32(nvml.OPERATIONAL_EVENT_SEVERITY_CORRECTED):     collector.SubCorrected,
	uint32(nvml.OPERATIONAL_EVENT_SEVERITY_RECOVERABLE):   collector.SubRecoverable,
	uint32(nvml.OPERATIONAL_EVENT_SEVERITY_FATAL):         collector.SubFatal,
}

// operationalSub returns the severity of an event, or why the event does not count as a
// fault of its GPU.
func operationalSub(d *nvml.EventSetWaitData_v3) string {
	switch {
	case d.GroupAttributes&nvml.OPERATIONAL_EVENT_GROUP_ATTR_SIMULATED != 0:
		return collector.SubSimulated
	case d.Attributes&nvml.OPERATIONAL_EVENT_ATTR_PROPAGATED != 0:
		return collector.SubPropagated
	}
	if sub, known := operationalSubs[d.Severity]; known {
		return sub
	}
	return collector.SubOther
}

// registerOperational subscribes the set to the Operational Events of a GPU, without
// telemetry and diagnosis, which would flood the pipe.
func (w *waiter) registerOperational(uuid string) {
	config := &nvml.GpuOperationalEventConfig_v1{MinLogLevel: uint32(nvml.GPU_OPERATIONAL_EVENT_LOG_LEVEL_NOTICE)}
	for i := range min(len(uuid), len(config.Uuid)-1) {
		config.Uuid[i] = int8(uuid[i])
	}
	do(&w.asker, callOperational, func() nvml.Return { return w.set.RegisterGpuOperationalEvents_v1(config) })
}

// wait waits for one event and delivers it. Only the newer of the two functions returns
// Operational Events; a driver that lacks this function has no such events.
func (w *waiter) wait() {
	if w.operational && w.may(callSetWait3) {
		data, ok := ask(&w.asker, callSetWait3, func() (nvml.EventSetWaitData_v3, nvml.Return) { return w.set.Wait_v3(waitTimeout) })
		switch {
		case !ok:
		case data.DataType == uint32(nvml.EVENT_DATA_TYPE_GPU_OPERATIONAL_EVENT):
			w.deliverOperational(&data, time.Now())
		default:
			w.deliver(nvml.EventData{
				Device: w.handle(cString(data.Uuid[:])), EventType: data.EventType, EventData: data.EventData,
				GpuInstanceId: data.GpuInstanceId, ComputeInstanceId: data.ComputeInstanceId,
			}, time.Now())
		}
		return
	}
	data, ok := ask(&w.asker, callSetWait, func() (nvml.EventData, nvml.Return) { return w.set.Wait(waitTimeout) })
	if ok {
		w.deliver(data, time.Now())
	}
}

func (w *waiter) deliverOperational(d *nvml.EventSetWaitData_v3, now time.Time) {
	e := collector.Event{
		Time: now, Source: Name, Device: cString(d.Uuid[:]), Kind: collector.EventOperational, Code: uint64(d.ModuleEventCode),
		Sub: operationalSub(d), Cause: w.contextXid(),
		Detail: fmt.Sprintf("%s event %#x, category %d", cString(d.SourceModule[:]), d.ModuleEventCode, d.CategoryId),
	}
	w.emit(e)
	w.readRecords(e.Device)
	if d.Attributes&nvml.OPERATIONAL_EVENT_ATTR_OVERFLOW != 0 {
		w.emit(collector.Event{Time: now, Source: Name, Device: e.Device, Kind: collector.EventDropped})
	}
}

// contextXid returns the Xid that the driver reports for the same incident, or 0.
func (w *waiter) contextXid() uint64 {
	n, _ := ask(&w.asker, callContextCount, w.set.GetContextCount_v1)
	for i := range min(n.Count, maxContexts) {
		info, ok := ask(&w.asker, callContextInfo, func() (nvml.GetContextInfo_v1, nvml.Return) { return w.set.GetContextInfo_v1(i) })
		if !ok || info.NvmlGpuOperationalEventContextType != uint32(nvml.GPU_OPERATIONAL_EVENT_CONTEXT_TYPE_LEGACY_XID) {
			continue
		}
		if xid, ok := ask(&w.asker, callContextXid, func() (uint32, nvml.Return) {
			return w.set.GetGpuOperationalEventContextLegacyXid_v1(i)
		}); ok {
			return uint64(xid)
		}
	}
	return 0
}

// handle returns the handle of the GPU with that UUID, nil without one.
func (e *events) handle(uuid string) nvml.Device {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h, g := range e.gpus {
		if g.id == uuid {
			return h
		}
	}
	return nil
}
