//go:build cgo

package sim

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// children are the programs that the tests run against the library, each with
// an unmodified go-nvml. They inject faults into their own state file; the test
// compares their results.
var children map[string]func(nvml.Interface) (map[string]any, error)

func init() {
	children = map[string]func(nvml.Interface) (map[string]any, error){
		"init":      initOnly,
		"values":    values,
		"sharing":   sharing,
		"sweep":     sweep,
		"mig":       migDevices,
		"profiles":  migProfiles,
		"events":    events,
		"system":    systemEvents,
		"gpm":       gpm,
		"fields":    fields,
		"faults":    faults,
		"hang":      hang,
		"init-hang": initHang,
		"reload":    reload,
		"counters":  counters,
		"lookup":    lookup,
		"unguarded": unguarded,
		"lookups":   lookups,
		"clear":     clearField,
	}
}

func inject(words ...string) error {
	return Update(os.Getenv("ACCEL_SIM_STATE"), func(s *State) error { return s.Inject(words) })
}

func initOnly(lib nvml.Interface) (map[string]any, error) {
	return map[string]any{"init": lib.Init()}, nil
}

func values(lib nvml.Interface) (map[string]any, error) {
	if err := check(lib.Init(), "init"); err != nil {
		return nil, err
	}
	out := map[string]any{}
	out["driver"], _ = lib.SystemGetDriverVersion()
	out["cuda"], _ = lib.SystemGetCudaDriverVersion_v2()
	out["count"], _ = lib.DeviceGetCount()
	for _, i := range []int{0, 6} {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if err := check(ret, "handle"); err != nil {
			return nil, err
		}
		p := fmt.Sprintf("%d.", i)
		out[p+"name"], _ = d.GetName()
		out[p+"temperature"], _ = d.GetTemperature(nvml.TEMPERATURE_GPU)
		out[p+"power"], _ = d.GetPowerUsage()
		out[p+"energy"], _ = d.GetTotalEnergyConsumption()
		out[p+"reasons"], _ = d.GetCurrentClocksEventReasons()
		u, _ := d.GetUtilizationRates()
		out[p+"util"] = u.Gpu
		v1, _ := d.GetMemoryInfo()
		v2, _ := d.GetMemoryInfo_v2()
		out[p+"reserved is used in v1"] = v1.Used-v2.Used == v2.Reserved && v2.Reserved > 0
		out[p+"total"] = v2.Total
		pci, _ := d.GetPciInfo()
		out[p+"bus"], out[p+"device"] = pci.Bus, pci.PciDeviceId
		margin, ret := d.GetMarginTemperature()
		out[p+"margin"] = fmt.Sprint(margin.MarginTemperature, ret)
		procs, _ := d.GetComputeRunningProcesses()
		out[p+"processes"] = len(procs)
		uuid, _ := d.GetUUID()
		again, ret := lib.DeviceGetHandleByUUID(uuid)
		out[p+"by uuid"] = ret == nvml.SUCCESS && again == d
		_, ret = lib.DeviceGetHandleByPciBusId("0000:53:00.0")
		out["by bus"] = ret
	}
	_, ret := lib.DeviceGetHandleByIndex(8)
	out["index 8"] = ret
	return out, nil
}

// sharing returns the utilization of the processes on a GPU, in percent. Their
// sum never exceeds the GPU's.
func sharing(lib nvml.Interface) (map[string]any, error) {
	if err := check(lib.Init(), "init"); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, i := range []int{0, 5, 6, 7} {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if err := check(ret, "handle"); err != nil {
			return nil, err
		}
		u, _ := d.GetUtilizationRates()
		out[fmt.Sprintf("%d", i)] = u.Gpu
		processes, ret := d.GetProcessUtilization(0)
		for _, p := range processes {
			out[fmt.Sprintf("%d.%d", i, p.Pid)] = p.SmUtil
		}
		if ret != nvml.SUCCESS {
			out[fmt.Sprintf("%d.none", i)] = fmt.Sprint(ret)
		}
	}
	return out, nil
}

func gpuCounts(lib nvml.Interface, n int) (nvml.Device, map[string]any, error) {
	if err := check(lib.Init(), "init"); err != nil {
		return nil, nil, err
	}
	reread(lib) // the set must be there before the faults
	d, ret := lib.DeviceGetHandleByIndex(n)
	return d, map[string]any{}, check(ret, "handle")
}

func migDevices(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 4)
	if err != nil {
		return nil, err
	}
	describe := func(p string) {
		_, _, ret := d.GetMigMode()
		most, _ := d.GetMaxMigDeviceCount()
		list := []string{}
		for i := range most {
			m, ret := d.GetMigDeviceHandleByIndex(i)
			if ret != nvml.SUCCESS {
				list = append(list, nvml.ErrorString(ret))
				break
			}
			name, _ := m.GetName()
			gi, _ := m.GetGpuInstanceId()
			ci, _ := m.GetComputeInstanceId()
			a, _ := m.GetAttributes()
			mem, _ := m.GetMemoryInfo()
			_, util := m.GetUtilizationRates()
			parent, _ := m.GetDeviceHandleFromMigDeviceHandle()
			procs, _ := m.GetComputeRunningProcesses()
			list = append(list, fmt.Sprintf("%s gi=%d ci=%d sm=%d mib=%d util=%v parent=%t processes=%d",
				name, gi, ci, a.MultiprocessorCount, mem.Total>>20, nvml.ErrorString(util), parent == d, len(procs)))
		}
		out[p], out[p+" ret"] = list, ret
	}
	describe("before")
	_, util := d.GetUtilizationRates()
	_, _, _, _, remap := d.GetRemappedRows()
	out["parent util"], out["parent remap"] = util, remap
	first, _ := d.GetMigDeviceHandleByIndex(0)
	if err := inject("mig", "4", "2g.20gb:1c+1c"); err != nil {
		return nil, err
	}
	reread(lib)
	describe("after")
	_, ret := first.GetUUID()
	out["old handle"] = ret
	return out, nil
}

// reread makes the library look at its file at once: waiting for an event does.
func reread(lib nvml.Interface) {
	if rereader == nil {
		rereader, _ = lib.EventSetCreate()
	}
	rereader.Wait(0)
}

var rereader nvml.EventSet

func migProfiles(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 2)
	if err != nil {
		return nil, err
	}
	list := []string{}
	for i := range nvml.GPU_INSTANCE_PROFILE_COUNT + 1 {
		p, ret := d.GetGpuInstanceProfileInfo(i)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			out["ends at"] = i
			break
		}
		if ret != nvml.SUCCESS {
			continue
		}
		gis, ret := d.GetGpuInstances(&p)
		if err := check(ret, "instances"); err != nil {
			return nil, err
		}
		for _, gi := range gis {
			info, _ := gi.GetInfo()
			for c := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
				cp, ret := gi.GetComputeInstanceProfileInfo(c, 0)
				if ret != nvml.SUCCESS {
					continue
				}
				cis, _ := gi.GetComputeInstances(&cp)
				for _, ci := range cis {
					ciInfo, _ := ci.GetInfo()
					list = append(list, fmt.Sprintf("gi %d slices %d at %d: ci %d of %d slices", info.Id, p.SliceCount, info.Placement.Start, ciInfo.Id, cp.SliceCount))
				}
			}
		}
	}
	out["instances"] = list
	return out, nil
}

func events(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 3)
	if err != nil {
		return nil, err
	}
	set, ret := lib.EventSetCreate()
	if err := check(ret, "event set"); err != nil {
		return nil, err
	}
	if err := inject("xid", "13", "3"); err != nil {
		return nil, err
	}
	supported, _ := d.GetSupportedEventTypes()
	if err := check(d.RegisterEvents(supported, set), "register"); err != nil {
		return nil, err
	}
	mig, _ := lib.DeviceGetHandleByIndex(4)
	if err := check(mig.RegisterEvents(nvml.EventTypeXidCriticalError, set), "register"); err != nil {
		return nil, err
	}
	if _, ret := set.Wait(0); ret != nvml.ERROR_TIMEOUT && ret != nvml.SUCCESS {
		return nil, check(ret, "wait")
	}
	failed := make(chan error, 1)
	go func() {
		failed <- errors.Join(
			inject("xid", "79", "all", "--count=200"),
			inject("xid", "94", "4/1"),
			inject("recovery-action", "reset", "3"),
			inject("lost", "3"))
	}()
	counts := map[string]int{}
	for {
		e, ret := set.Wait(60000)
		if ret != nvml.SUCCESS {
			out["end"] = ret
			break
		}
		i := 3 // by handle: a lost GPU has no index
		if e.Device == mig {
			i = 4
		}
		counts[fmt.Sprintf("gpu %d type %d data %d gi %d ci %d", i, e.EventType, e.EventData, int32(e.GpuInstanceId), int32(e.ComputeInstanceId))]++
	}
	out["counts"] = counts
	return out, <-failed
}

func systemEvents(lib nvml.Interface) (map[string]any, error) {
	_, out, err := gpuCounts(lib, 0)
	if err != nil {
		return nil, err
	}
	create := nvml.SystemEventSetCreateRequest{Version: nvml.STRUCT_VERSION(nvml.SystemEventSetCreateRequest{}, 1)}
	if err := check(lib.SystemEventSetCreate(&create), "create"); err != nil {
		return nil, err
	}
	register := nvml.SystemRegisterEventRequest{Version: nvml.STRUCT_VERSION(nvml.SystemRegisterEventRequest{}, 1), EventTypes: 3, Set: create.Set}
	if err := check(lib.SystemRegisterEvents(&register), "register"); err != nil {
		return nil, err
	}
	if err := inject("gone", "1"); err != nil {
		return nil, err
	}
	data := make([]nvml.SystemEventData_v1, 4)
	var pin runtime.Pinner // go-nvml hands the struct to C as it is
	pin.Pin(&data[0])
	defer pin.Unpin()
	wait := nvml.SystemEventSetWaitRequest{Version: nvml.STRUCT_VERSION(nvml.SystemEventSetWaitRequest{}, 1), Timeoutms: 60000, Set: create.Set, DataSize: 4}
	wait.Data = &data[0]
	out["wait"] = lib.SystemEventSetWait(&wait)
	out["events"], out["type"], out["gpu"] = wait.NumEvent, data[0].EventType, data[0].GpuId
	out["count"], _ = lib.DeviceGetCount()
	return out, nil
}
