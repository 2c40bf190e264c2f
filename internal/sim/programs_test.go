//go:build cgo

package sim_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// programs run against the library, each in a process of its own with an
// unmodified go-nvml. They inject faults into their own state file; the test
// compares their results. What they cannot do ends them by a panic.
var programs = map[string]func(lib nvml.Interface, out map[string]any){
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

func edit(f func(*sim.State) error) {
	if err := sim.Update(os.Getenv(simtest.StateVar), f); err != nil {
		panic(err)
	}
}

func inject(words ...string) { edit(func(s *sim.State) error { return s.Inject(words) }) }

func clearFaults(device string) { edit(func(s *sim.State) error { return s.Clear(device) }) }

func must(ret nvml.Return, what string) {
	if ret != nvml.SUCCESS {
		panic(what + ": " + nvml.ErrorString(ret))
	}
}

// handle initializes the library and returns a GPU.
func handle(lib nvml.Interface, index int) nvml.Device {
	must(lib.Init(), "init")
	reread(lib) // the set must be there before the faults
	d, ret := lib.DeviceGetHandleByIndex(index)
	must(ret, "handle")
	return d
}

// reread makes the library look at its file at once: waiting for an event does.
func reread(lib nvml.Interface) {
	if rereader == nil {
		rereader, _ = lib.EventSetCreate()
	}
	rereader.Wait(0)
}

var rereader nvml.EventSet

func initOnly(lib nvml.Interface, out map[string]any) { out["init"] = lib.Init() }

func values(lib nvml.Interface, out map[string]any) {
	must(lib.Init(), "init")
	out["driver"], _ = lib.SystemGetDriverVersion()
	out["cuda"], _ = lib.SystemGetCudaDriverVersion_v2()
	out["count"], _ = lib.DeviceGetCount()
	for _, i := range []int{0, 6} {
		d, ret := lib.DeviceGetHandleByIndex(i)
		must(ret, "handle")
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
}

// sharing returns the utilization of the processes on a GPU, in percent. Their
// sum never exceeds the GPU's.
func sharing(lib nvml.Interface, out map[string]any) {
	must(lib.Init(), "init")
	for _, i := range []int{0, 5, 6, 7} {
		d, ret := lib.DeviceGetHandleByIndex(i)
		must(ret, "handle")
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
}

func migDevices(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 4)
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
	inject("mig", "4", "2g.20gb:1c+1c")
	reread(lib)
	describe("after")
	_, ret := first.GetUUID()
	out["old handle"] = ret
}

func migProfiles(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 2)
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
		must(ret, "instances")
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
}

func events(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 3)
	set, ret := lib.EventSetCreate()
	must(ret, "event set")
	inject("xid", "13", "3")
	supported, _ := d.GetSupportedEventTypes()
	must(d.RegisterEvents(supported, set), "register")
	mig, _ := lib.DeviceGetHandleByIndex(4)
	must(mig.RegisterEvents(nvml.EventTypeXidCriticalError, set), "register")
	if _, ret := set.Wait(0); ret != nvml.ERROR_TIMEOUT {
		must(ret, "wait")
	}
	injected := make(chan struct{})
	go func() {
		defer close(injected)
		inject("xid", "79", "all", "--count=200")
		inject("xid", "94", "4/1")
		inject("recovery-action", "reset", "3")
		inject("lost", "3")
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
	<-injected
}

func systemEvents(lib nvml.Interface, out map[string]any) {
	handle(lib, 0)
	create := nvml.SystemEventSetCreateRequest{Version: nvml.STRUCT_VERSION(nvml.SystemEventSetCreateRequest{}, 1)}
	must(lib.SystemEventSetCreate(&create), "create")
	register := nvml.SystemRegisterEventRequest{Version: nvml.STRUCT_VERSION(nvml.SystemRegisterEventRequest{}, 1), EventTypes: 3, Set: create.Set}
	must(lib.SystemRegisterEvents(&register), "register")
	inject("gone", "1")
	data := make([]nvml.SystemEventData_v1, 4)
	var pin runtime.Pinner // go-nvml hands the struct to C as it is
	pin.Pin(&data[0])
	defer pin.Unpin()
	wait := nvml.SystemEventSetWaitRequest{Version: nvml.STRUCT_VERSION(nvml.SystemEventSetWaitRequest{}, 1), Timeoutms: 60000, Set: create.Set, DataSize: 4}
	wait.Data = &data[0]
	out["wait"] = lib.SystemEventSetWait(&wait)
	out["events"], out["type"], out["gpu"] = wait.NumEvent, data[0].EventType, data[0].GpuId
	out["count"], _ = lib.DeviceGetCount()
}

func gpm(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 3)
	mig, _ := lib.DeviceGetHandleByIndex(4)
	support, ret := d.GpmQueryDeviceSupport()
	out["supported"] = fmt.Sprint(support.IsSupportedDevice, ret)
	get := func(take func(nvml.GpmSample) nvml.Return, ids ...uint32) string {
		a, _ := lib.GpmSampleAlloc()
		b, _ := lib.GpmSampleAlloc()
		defer a.Free()
		defer b.Free()
		for _, sample := range []nvml.GpmSample{a, b} {
			if ret := take(sample); ret != nvml.SUCCESS {
				return nvml.ErrorString(ret)
			}
		}
		m := nvml.GpmMetricsGetType{NumMetrics: uint32(len(ids)), Sample1: a, Sample2: b}
		for i, id := range ids {
			m.Metrics[i].MetricId = id
		}
		if ret := lib.GpmMetricsGet(&m); ret != nvml.SUCCESS {
			return nvml.ErrorString(ret)
		}
		s := ""
		for i := range ids {
			if m.Metrics[i].NvmlReturn != 0 {
				s += fmt.Sprintf("%d: return %d; ", ids[i], m.Metrics[i].NvmlReturn)
				continue
			}
			s += fmt.Sprintf("%d: %.2f; ", ids[i], m.Metrics[i].Value)
		}
		return s
	}
	out["gpu"] = get(d.GpmSampleGet, 1, 2, 10, 60, 97, 98, 100, 400)
	out["mig"] = get(func(s nvml.GpmSample) nvml.Return { return mig.GpmMigSampleGet(2, s) }, 1, 5, 60)
	out["no such gi"] = get(func(s nvml.GpmSample) nvml.Return { return mig.GpmMigSampleGet(6, s) }, 1)
}

func fields(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 0)
	ask := []nvml.FieldValue{
		{FieldId: 230},
		{FieldId: 82},
		{FieldId: 193},
		{FieldId: 74},
		{FieldId: 94},
		{FieldId: 142},
		{FieldId: 161, ScopeId: 3},
		{FieldId: 201, ScopeId: 3},
		{FieldId: 221, ScopeId: 3},
		{FieldId: 221, ScopeId: 99},
		{FieldId: 165, ScopeId: 5},
		{FieldId: 83},
		{FieldId: 251},
		{FieldId: 9999},
		{FieldId: 38},
	}
	must(d.GetFieldValues(ask), "fields")
	for _, f := range ask {
		key := fmt.Sprintf("%d/%d", f.FieldId, f.ScopeId)
		if f.NvmlReturn != 0 {
			out[key] = fmt.Sprintf("return %d", f.NvmlReturn)
			continue
		}
		out[key] = fmt.Sprintf("type %d value %x", f.ValueType, f.Value)
	}
}

// faults applies to one GPU the faults that change a result.
func faults(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 0)
	bystander, _ := lib.DeviceGetHandleByIndex(7)
	for _, step := range [][]string{
		{"lost", "0"},
		{"reset-required", "0"},
		{"gone", "0"},
		{"not-supported", "nvmlDeviceGetPowerUsage", "0"},
		{"error", "nvmlDeviceGetPowerUsage", "UNKNOWN"},
		{"set", "power", "error:NO_DATA", "0"},
		{"set", "power", "4294967295", "0"},
		{"set", "power", "-1", "0"},
		{"set", "power", "1e30", "0"},
		{"driver-mismatch"},
		{"driver-unload"},
		{"slow", "0", "--delay=1ms"},
	} {
		inject(step...)
		reread(lib)
		v, ret := d.GetPowerUsage()
		_, other := bystander.GetPowerUsage()
		n, _ := lib.DeviceGetCount()
		out[fmt.Sprint(step)] = fmt.Sprintf("%d %d; other %d; count %d", v, ret, other, n)
		clearFaults("all")
	}
	reread(lib)
	v, ret := d.GetPowerUsage()
	out["cleared"] = fmt.Sprint(v, ret)
}

// hang blocks a getter and wakes it by a clear.
func hang(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 0)
	inject("hang", "0")
	reread(lib)
	done := make(chan nvml.Return, 1)
	go func() {
		runtime.LockOSThread()
		_, ret := d.GetPowerUsage()
		done <- ret
	}()
	bystander, _ := lib.DeviceGetHandleByIndex(1)
	_, other := bystander.GetPowerUsage()
	select {
	case <-done:
		out["blocked"] = false
	default:
		out["blocked"] = true
	}
	clearFaults("0")
	out["other"], out["after"] = other, <-done
}

func initHang(lib nvml.Interface, out map[string]any) {
	done := make(chan nvml.Return, 1)
	go func() { done <- lib.Init() }()
	clearFaults("all")
	out["init"] = <-done
}

func reload(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 0)
	inject("ecc", "uncorrected", "0", "--count=3")
	reread(lib)
	ecc := func(counter nvml.EccCounterType) string {
		n, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, counter)
		return fmt.Sprint(n, ret)
	}
	out["before"] = ecc(nvml.VOLATILE_ECC) + " " + ecc(nvml.AGGREGATE_ECC)
	inject("driver-reload", "--driver=600.1")
	reread(lib)
	out["old handle"] = ecc(nvml.VOLATILE_ECC)
	lib.Shutdown()
	out["init"] = lib.Init()
	out["after"] = ecc(nvml.VOLATILE_ECC) + " " + ecc(nvml.AGGREGATE_ECC)
	out["driver"], _ = lib.SystemGetDriverVersion()
}

// counters must follow their signals exactly and never go back, whatever is set.
func counters(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 6)
	var before [3]uint64
	read := func(step string) {
		ask := []nvml.FieldValue{{FieldId: 83}, {FieldId: 270}, {FieldId: 197}}
		reread(lib)
		d.GetFieldValues(ask)
		s := ""
		for i, f := range ask {
			v := binary.LittleEndian.Uint64(f.Value[:])
			s += fmt.Sprintf("%+d ", int64(v-before[i]))
			before[i] = v
		}
		out[step] = s
	}
	read("0 start")
	for i, step := range [][]string{
		{"advance", "10"},
		{"throttle", "hw-thermal", "6"},
		{"advance", "10"},
		{"throttle", "hw-thermal", "6", "off"},
		{"advance", "10"},
		{"set", "power", "100000", "6"},
		{"advance", "10"},
		{"set", "power", "1e30", "6"},
		{"advance", "1"},
		{"set", "power", "-5", "6"},
		{"advance", "1"},
		{"set", "load", "1", "6"},
		{"advance", "2"},
	} {
		inject(step...)
		read(fmt.Sprintf("%02d %v", i+1, step))
	}
}

func lookup(lib nvml.Interface, out map[string]any) {
	out["init"] = lib.Init()
	for _, name := range []string{"nvmlDeviceGetTemperature", "nvmlGpmSampleGet", "nvmlDeviceGetGpuFabricInfoV"} {
		out[name] = lib.Extensions().LookupSymbol(name) == nil
	}
}

// lookups makes the lookups of one GPU fail, each by its name, and no other's.
func lookups(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 3)
	uuid, _ := d.GetUUID()
	pci, _ := d.GetPciInfo()
	bus := fmt.Sprintf("%08x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	for _, words := range [][]string{
		{"error", "nvmlDeviceGetHandleByIndex_v2", "NO_PERMISSION", "3"},
		{"error", "nvmlDeviceGetHandleByUUID", "NO_PERMISSION", "3"},
		{"error", "nvmlDeviceGetHandleByPciBusId", "NO_PERMISSION", "3"},
		{"slow", "3", "--delay=1h"}, // a device's plain fault is of its getters
	} {
		inject(words...)
		reread(lib)
		_, other := lib.DeviceGetHandleByIndex(2)
		_, index := lib.DeviceGetHandleByIndex(3)
		_, byUUID := lib.DeviceGetHandleByUUID(uuid)
		_, byBus := lib.DeviceGetHandleByPciBusId(bus)
		out[strings.Join(words[:2], " ")] = fmt.Sprintf("other %d; index %d; uuid %d; bus %d", other, index, byUUID, byBus)
		clearFaults("all")
	}
}

// clearField forces the memory temperature and lets the model answer again.
func clearField(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 1)
	read := func(step string) {
		reread(lib)
		ask := []nvml.FieldValue{{FieldId: nvml.FI_DEV_MEMORY_TEMP}}
		ret := d.GetFieldValues(ask)
		out[step] = fmt.Sprintf("%d %d: %d", ret, ask[0].NvmlReturn, binary.LittleEndian.Uint32(ask[0].Value[:]))
	}
	read("1 before")
	inject("field", "82", "35000", "1")
	read("2 forced")
	clearFaults("all")
	read("3 cleared")
}

// unguarded calls functions that the library does not have.
func unguarded(lib nvml.Interface, out map[string]any) {
	_, ret := handle(lib, 0).GetMarginTemperature()
	out["ret"] = ret
}

// sweep calls every getter of go-nvml with plain numbers as arguments, on every
// device: in no scenario may one crash or return an invalid code.
func sweep(lib nvml.Interface, out map[string]any) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		out["init"] = ret
		return
	}
	n, _ := lib.DeviceGetCount()
	migs, lost, odd := 0, 0, 0
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			lost++
			continue
		}
		odd += getters(d)
		most, _ := d.GetMaxMigDeviceCount()
		for m := range most {
			if h, ret := d.GetMigDeviceHandleByIndex(m); ret == nvml.SUCCESS {
				migs++
				odd += getters(h)
			}
		}
	}
	out["gpus"], out["migs"], out["lost"], out["odd"] = n, migs, lost, odd
}

func getters(d nvml.Device) (odd int) {
	v := reflect.ValueOf(d)
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if !strings.HasPrefix(name, "Get") || strings.Contains(name, "Vgpu") || name == "GetPcieThroughput" {
			continue
		}
		args, ok := zeroes(m.Type())
		if !ok {
			continue
		}
		results := m.Call(args)
		if ret, ok := reflect.TypeAssert[nvml.Return](results[len(results)-1]); ok && (ret < 0 || ret > 30 && ret != nvml.ERROR_UNKNOWN) {
			odd++
		}
	}
	return odd
}

func zeroes(t reflect.Type) ([]reflect.Value, bool) {
	var args []reflect.Value
	for in := range t.Ins() {
		switch in.Kind() {
		case reflect.Int, reflect.Int32, reflect.Uint32, reflect.Uint64:
			args = append(args, reflect.Zero(in))
		default:
			return nil, false
		}
	}
	return args, t.NumOut() > 0
}
