//go:build cgo

package sim

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func gpm(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 3)
	if err != nil {
		return nil, err
	}
	mig, _ := lib.DeviceGetHandleByIndex(4)
	support, ret := d.GpmQueryDeviceSupport()
	out["supported"] = fmt.Sprint(support.IsSupportedDevice, ret)
	get := func(take func(nvml.GpmSample) nvml.Return, ids ...uint32) string {
		a, _ := lib.GpmSampleAlloc()
		b, _ := lib.GpmSampleAlloc()
		defer a.Free()
		defer b.Free()
		if ret := take(a); ret != nvml.SUCCESS {
			return nvml.ErrorString(ret)
		}
		if ret := take(b); ret != nvml.SUCCESS {
			return nvml.ErrorString(ret)
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
	out["gpu"] = get(func(s nvml.GpmSample) nvml.Return { return d.GpmSampleGet(s) }, 1, 2, 10, 60, 97, 98, 100, 400)
	out["mig"] = get(func(s nvml.GpmSample) nvml.Return { return mig.GpmMigSampleGet(2, s) }, 1, 5, 60)
	out["no such gi"] = get(func(s nvml.GpmSample) nvml.Return { return mig.GpmMigSampleGet(6, s) }, 1)
	return out, nil
}

func fields(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 0)
	if err != nil {
		return nil, err
	}
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
	if err := check(d.GetFieldValues(ask), "fields"); err != nil {
		return nil, err
	}
	for _, f := range ask {
		key := fmt.Sprintf("%d/%d", f.FieldId, f.ScopeId)
		if f.NvmlReturn != 0 {
			out[key] = fmt.Sprintf("return %d", f.NvmlReturn)
			continue
		}
		out[key] = fmt.Sprintf("type %d value %x", f.ValueType, f.Value)
	}
	return out, nil
}

// faults applies to one GPU the faults that change a result.
func faults(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 0)
	if err != nil {
		return nil, err
	}
	bystander, _ := lib.DeviceGetHandleByIndex(7)
	steps := [][]string{
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
	}
	for _, step := range steps {
		if err := inject(step...); err != nil {
			return nil, err
		}
		reread(lib)
		v, ret := d.GetPowerUsage()
		_, other := bystander.GetPowerUsage()
		n, _ := lib.DeviceGetCount()
		out[fmt.Sprint(step)] = fmt.Sprintf("%d %d; other %d; count %d", v, ret, other, n)
		if err := Update(os.Getenv("ACCEL_SIM_STATE"), func(s *State) error { return s.Clear("all") }); err != nil {
			return nil, err
		}
	}
	reread(lib)
	v, ret := d.GetPowerUsage()
	out["cleared"] = fmt.Sprint(v, ret)
	return out, nil
}

// hang blocks a getter and wakes it by a clear.
func hang(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 0)
	if err != nil {
		return nil, err
	}
	if err := inject("hang", "0"); err != nil {
		return nil, err
	}
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
	if err := Update(os.Getenv("ACCEL_SIM_STATE"), func(s *State) error { return s.Clear("0") }); err != nil {
		return nil, err
	}
	out["other"], out["after"] = other, <-done
	return out, nil
}

func initHang(lib nvml.Interface) (map[string]any, error) {
	done := make(chan nvml.Return, 1)
	go func() { done <- lib.Init() }()
	if err := Update(os.Getenv("ACCEL_SIM_STATE"), func(s *State) error { return s.Clear("all") }); err != nil {
		return nil, err
	}
	return map[string]any{"init": <-done}, nil
}

func reload(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 0)
	if err != nil {
		return nil, err
	}
	if err := inject("ecc", "uncorrected", "0", "--count=3"); err != nil {
		return nil, err
	}
	reread(lib)
	ecc := func(counter nvml.EccCounterType) string {
		n, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, counter)
		return fmt.Sprint(n, ret)
	}
	out["before"] = ecc(nvml.VOLATILE_ECC) + " " + ecc(nvml.AGGREGATE_ECC)
	if err := inject("driver-reload", "--driver=600.1"); err != nil {
		return nil, err
	}
	reread(lib)
	out["old handle"] = ecc(nvml.VOLATILE_ECC)
	lib.Shutdown()
	out["init"] = lib.Init()
	out["after"] = ecc(nvml.VOLATILE_ECC) + " " + ecc(nvml.AGGREGATE_ECC)
	out["driver"], _ = lib.SystemGetDriverVersion()
	return out, nil
}

// counters must follow their signals exactly and never go back, whatever is set.
func counters(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 6)
	if err != nil {
		return nil, err
	}
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
		if err := inject(step...); err != nil {
			return nil, err
		}
		read(fmt.Sprintf("%02d %v", i+1, step))
	}
	return out, nil
}

func lookup(lib nvml.Interface) (map[string]any, error) {
	out := map[string]any{"init": lib.Init()}
	for _, name := range []string{"nvmlDeviceGetTemperature", "nvmlGpmSampleGet", "nvmlDeviceGetGpuFabricInfoV"} {
		out[name] = lib.Extensions().LookupSymbol(name) == nil
	}
	return out, nil
}

// lookups makes the lookups of one GPU fail, each by its name, and no other's.
func lookups(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 3)
	if err != nil {
		return nil, err
	}
	uuid, _ := d.GetUUID()
	pci, _ := d.GetPciInfo()
	bus := fmt.Sprintf("%08x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	for _, call := range []string{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId", ""} {
		words := []string{"error", call, "NO_PERMISSION", "3"}
		if call == "" { // a device's plain fault is of its getters
			words = []string{"slow", "3", "--delay=1h"}
		}
		if err := inject(words...); err != nil {
			return nil, err
		}
		reread(lib)
		_, other := lib.DeviceGetHandleByIndex(2)
		_, index := lib.DeviceGetHandleByIndex(3)
		_, byUUID := lib.DeviceGetHandleByUUID(uuid)
		_, byBus := lib.DeviceGetHandleByPciBusId(bus)
		out[strings.Join(words[:2], " ")] = fmt.Sprintf("other %d; index %d; uuid %d; bus %d", other, index, byUUID, byBus)
		if err := Update(os.Getenv("ACCEL_SIM_STATE"), func(s *State) error { return s.Clear("all") }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// clearField forces the memory temperature and lets the model answer again.
func clearField(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 1)
	if err != nil {
		return nil, err
	}
	read := func(step string) {
		reread(lib)
		ask := []nvml.FieldValue{{FieldId: nvml.FI_DEV_MEMORY_TEMP}}
		ret := d.GetFieldValues(ask)
		out[step] = fmt.Sprintf("%d %d: %d", ret, ask[0].NvmlReturn, binary.LittleEndian.Uint32(ask[0].Value[:]))
	}
	read("1 before")
	if err := inject("field", "82", "35000", "1"); err != nil {
		return nil, err
	}
	read("2 forced")
	if err := Update(os.Getenv("ACCEL_SIM_STATE"), func(s *State) error { return s.Clear("all") }); err != nil {
		return nil, err
	}
	read("3 cleared")
	return out, nil
}

// unguarded calls functions that the library does not have.
func unguarded(lib nvml.Interface) (map[string]any, error) {
	d, out, err := gpuCounts(lib, 0)
	if err != nil {
		return nil, err
	}
	_, ret := d.GetMarginTemperature()
	out["ret"] = ret
	return out, nil
}
