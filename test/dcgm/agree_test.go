package dcgm

import (
	"math"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// reading is NVML's value of a field, in DCGM's unit.
type reading struct {
	value any // int64, float64 or string
	ret   nvml.Return
}

func whole[T ~int | ~int32 | ~uint32 | ~uint64 | ~uint16](v T, ret nvml.Return) reading {
	return reading{int64(v), ret}
}

func watts(v uint32, ret nvml.Return) reading { return reading{float64(v) / 1000, ret} }

func limit(v uint32, ret nvml.Return) reading { return reading{float64(v / 1000), ret} }

func clock(t nvml.ClockType) func(nvml.Device) reading {
	return func(d nvml.Device) reading { return whole(d.GetClockInfo(t)) }
}

func threshold(t nvml.TemperatureThresholds) func(nvml.Device) reading {
	return func(d nvml.Device) reading { return whole(d.GetTemperatureThreshold(t)) }
}

func memory(of func(nvml.Memory_v2) uint64) func(nvml.Device) reading {
	return func(d nvml.Device) reading {
		m, ret := d.GetMemoryInfo_v2()
		return whole(of(m)>>20, ret)
	}
}

func utilization(of func(nvml.Utilization) uint32) func(nvml.Device) reading {
	return func(d nvml.Device) reading {
		u, ret := d.GetUtilizationRates()
		return whole(of(u), ret)
	}
}

func ecc(kind nvml.MemoryErrorType, counter nvml.EccCounterType) func(nvml.Device) reading {
	return func(d nvml.Device) reading { return whole(d.GetTotalEccErrors(kind, counter)) }
}

// field is one of nvmlDeviceGetFieldValues, with its own return code.
func field(id uint32) func(nvml.Device) reading {
	return func(d nvml.Device) reading {
		v := []nvml.FieldValue{{FieldId: id}}
		if ret := d.GetFieldValues(v); ret != nvml.SUCCESS {
			return reading{ret: ret}
		}
		var n int64
		for i, b := range v[0].Value {
			n |= int64(b) << (8 * i)
		}
		if nvml.ValueType(v[0].ValueType) == nvml.VALUE_TYPE_UNSIGNED_INT {
			n = int64(uint32(n))
		}
		return reading{n, nvml.Return(v[0].NvmlReturn)}
	}
}

func text(get func(nvml.Device) (string, nvml.Return)) func(nvml.Device) reading {
	return func(d nvml.Device) reading {
		v, ret := get(d)
		return reading{v, ret}
	}
}

// agreement has the NVML call behind each field that DCGM reads from NVML.
var agreement = map[dcgm.Short]func(nvml.Device) reading{
	50:   text(nvml.Device.GetName),
	53:   text(nvml.Device.GetSerial),
	54:   text(nvml.Device.GetUUID),
	82:   text(nvml.Device.GetInforomImageVersion),
	85:   text(nvml.Device.GetVbiosVersion),
	52:   func(d nvml.Device) reading { return whole(d.GetIndex()) },
	55:   func(d nvml.Device) reading { return whole(d.GetMinorNumber()) },
	66:   func(d nvml.Device) reading { return whole(d.GetPersistenceMode()) },
	67:   func(d nvml.Device) reading { mode, _, ret := d.GetMigMode(); return whole(mode, ret) },
	100:  clock(nvml.CLOCK_SM),
	101:  clock(nvml.CLOCK_MEM),
	102:  clock(nvml.CLOCK_VIDEO),
	112:  func(d nvml.Device) reading { return whole(d.GetCurrentClocksEventReasons()) },
	113:  func(d nvml.Device) reading { return whole(d.GetMaxClockInfo(nvml.CLOCK_SM)) },
	140:  field(nvml.FI_DEV_MEMORY_TEMP),
	150:  func(d nvml.Device) reading { return whole(d.GetTemperature(nvml.TEMPERATURE_GPU)) },
	158:  threshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
	159:  threshold(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
	155:  func(d nvml.Device) reading { return watts(d.GetPowerUsage()) },
	156:  func(d nvml.Device) reading { return whole(d.GetTotalEnergyConsumption()) },
	160:  func(d nvml.Device) reading { return limit(d.GetPowerManagementLimit()) },
	163:  func(d nvml.Device) reading { return limit(d.GetPowerManagementDefaultLimit()) },
	164:  func(d nvml.Device) reading { return limit(d.GetEnforcedPowerLimit()) },
	190:  func(d nvml.Device) reading { return whole(d.GetPerformanceState()) },
	191:  func(d nvml.Device) reading { return whole(d.GetFanSpeed()) },
	202:  func(d nvml.Device) reading { return whole(d.GetPcieReplayCounter()) },
	203:  utilization(func(u nvml.Utilization) uint32 { return u.Gpu }),
	204:  utilization(func(u nvml.Utilization) uint32 { return u.Memory }),
	206:  func(d nvml.Device) reading { v, _, ret := d.GetEncoderUtilization(); return whole(v, ret) },
	207:  func(d nvml.Device) reading { v, _, ret := d.GetDecoderUtilization(); return whole(v, ret) },
	235:  func(d nvml.Device) reading { return whole(d.GetMaxPcieLinkGeneration()) },
	237:  func(d nvml.Device) reading { return whole(d.GetCurrPcieLinkGeneration()) },
	238:  func(d nvml.Device) reading { return whole(d.GetCurrPcieLinkWidth()) },
	240:  field(nvml.FI_DEV_PERF_POLICY_POWER),
	241:  field(nvml.FI_DEV_PERF_POLICY_THERMAL),
	250:  memory(func(m nvml.Memory_v2) uint64 { return m.Total }),
	251:  memory(func(m nvml.Memory_v2) uint64 { return m.Free }),
	252:  memory(func(m nvml.Memory_v2) uint64 { return m.Used }),
	253:  memory(func(m nvml.Memory_v2) uint64 { return m.Reserved }),
	310:  ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC),
	311:  ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC),
	312:  ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC),
	313:  ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC),
	390:  field(nvml.FI_DEV_RETIRED_SBE),
	391:  field(nvml.FI_DEV_RETIRED_DBE),
	392:  field(nvml.FI_DEV_RETIRED_PENDING),
	393:  field(nvml.FI_DEV_REMAPPED_UNC),
	394:  field(nvml.FI_DEV_REMAPPED_COR),
	395:  field(nvml.FI_DEV_REMAPPED_FAILURE),
	396:  field(nvml.FI_DEV_REMAPPED_PENDING),
	409:  field(nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
	429:  field(nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
	1423: field(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN),
	1523: field(nvml.FI_DEV_GET_GPU_RECOVERY_ACTION),
}

// gpm gives the metric that each profiling field is made of, and by how much
// DCGM's value is larger.
var gpm = map[dcgm.Short]struct {
	metric nvml.GpmMetricId
	times  float64
}{
	1001: {nvml.GPM_METRIC_GRAPHICS_UTIL, 0.01},
	1002: {nvml.GPM_METRIC_SM_UTIL, 0.01},
	1003: {nvml.GPM_METRIC_SM_OCCUPANCY, 0.01},
	1004: {nvml.GPM_METRIC_ANY_TENSOR_UTIL, 0.01},
	1005: {nvml.GPM_METRIC_DRAM_BW_UTIL, 0.01},
	1006: {nvml.GPM_METRIC_FP64_UTIL, 0.01},
	1007: {nvml.GPM_METRIC_FP32_UTIL, 0.01},
	1008: {nvml.GPM_METRIC_FP16_UTIL, 0.01},
	1009: {nvml.GPM_METRIC_PCIE_TX_PER_SEC, 1 << 20},
	1010: {nvml.GPM_METRIC_PCIE_RX_PER_SEC, 1 << 20},
	1011: {nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, 1 << 20},
	1012: {nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, 1 << 20},
	1013: {nvml.GPM_METRIC_IMMA_TENSOR_UTIL, 0.01},
	1016: {nvml.GPM_METRIC_INTEGER_UTIL, 0.01},
}

// agree compares every value of DCGM with NVML's, both in this one process and
// from one state file whose clock stands still.
func agree(c *client) {
	library := nvml.New()
	if ret := library.Init(); ret != nvml.SUCCESS {
		c.failf("nvmlInit: %v", ret)
	}
	defer library.Shutdown()
	n, err := dcgm.GetAllDeviceCount()
	c.must(err, "count")
	var fields []dcgm.Short
	for id := range agreement {
		fields = append(fields, id)
	}
	for id := range gpm {
		fields = append(fields, id)
	}
	c.watch(fields, gpus(n)...)
	values := c.read(fields, gpus(n)...)
	for i := range n {
		d, ret := library.DeviceGetHandleByIndex(int(i))
		if ret != nvml.SUCCESS {
			c.failf("handle %d: %v", i, ret)
			continue
		}
		for id, get := range agreement {
			c.same(values[point{dcgm.FE_GPU, i, id}], get(d))
		}
		c.sameProfile(library, d, i, fields)
	}
}

// same compares a value with NVML's.
func (c *client) same(got dcgm.FieldValue_v2, want reading) {
	var value any = got.Int64()
	switch got.FieldType {
	case dcgm.DCGM_FT_DOUBLE:
		value = got.Float64()
	case dcgm.DCGM_FT_STRING:
		value = *got.StringValue
	}
	if want.ret != nvml.SUCCESS {
		if !blank(got) {
			c.failf("GPU %d, field %d: DCGM has %v, NVML answers %v", got.EntityID, got.FieldID, value, want.ret)
		}
		if n, ok := value.(int64); ok && want.ret == nvml.ERROR_NOT_SUPPORTED && n != 0x7ffffffffffffff2 {
			c.failf("GPU %d, field %d: the blank %x for what is not supported", got.EntityID, got.FieldID, n)
		}
		return
	}
	if value != want.value {
		c.failf("GPU %d, field %d: DCGM has %v, NVML %v", got.EntityID, got.FieldID, value, want.value)
	}
}

// hasModule reports whether DCGM has profiling counters of a GPU.
func hasModule(i uint) bool {
	groups, err := dcgm.GetSupportedMetricGroups(i)
	return err == nil && len(groups) > 0
}

// plausible looks at the profiling fields of a GPU of which NVML has none and
// DCGM's profiling module has: shares of time, and rates.
func (c *client) plausible(i uint) {
	c.until("profiling", func() bool { return !blank(c.read([]dcgm.Short{1001}, gpu(i))[point{dcgm.FE_GPU, i, 1001}]) })
	for p, v := range c.read([]dcgm.Short{1001, 1002, 1003, 1004, 1005, 1009, 1010}, gpu(i)) {
		if ratio := v.FieldType == dcgm.DCGM_FT_DOUBLE; blank(v) || ratio && (v.Float64() < 0 || v.Float64() > 1) || !ratio && v.Int64() < 0 {
			c.failf("GPU %d, field %d: %v, %v", i, p.field, v.Float64(), v.Int64())
		}
	}
}

// sameProfile compares the profiling fields: with a clock that stands still any
// two samples of GPM are of the same second.
func (c *client) sameProfile(library nvml.Interface, d nvml.Device, i uint, fields []dcgm.Short) {
	support, ret := d.GpmQueryDeviceSupport()
	supported := ret == nvml.SUCCESS && support.IsSupportedDevice == 1
	if !supported && hasModule(i) {
		c.plausible(i)
		return
	}
	a, _ := library.GpmSampleAlloc()
	b, _ := library.GpmSampleAlloc()
	defer func() { _, _ = a.Free(), b.Free() }()
	if supported && (a.Get(d) != nvml.SUCCESS || b.Get(d) != nvml.SUCCESS) {
		c.failf("GPU %d: no samples of GPM", i)
		return
	}
	if supported {
		c.until("profiling", func() bool { return !blank(c.read([]dcgm.Short{1001}, gpu(i))[point{dcgm.FE_GPU, i, 1001}]) })
	}
	values := c.read(fields, gpu(i))
	for id, m := range gpm {
		v := values[point{dcgm.FE_GPU, i, id}]
		get := nvml.GpmMetricsGetType{NumMetrics: 1, Sample1: a, Sample2: b}
		get.Metrics[0].MetricId = uint32(m.metric)
		if !supported || library.GpmMetricsGet(&get) != nvml.SUCCESS || get.Metrics[0].NvmlReturn != uint32(nvml.SUCCESS) {
			if !blank(v) {
				c.failf("GPU %d, field %d: %v where GPM has nothing", i, id, v.Float64())
			}
			continue
		}
		got, want := v.Float64(), get.Metrics[0].Value*m.times
		if v.FieldType == dcgm.DCGM_FT_INT64 {
			got, want = float64(v.Int64()), math.Floor(want)
		}
		if math.Abs(got-want) > 1e-9*math.Abs(want)+1e-12 {
			c.failf("GPU %d, field %d: DCGM has %v, GPM %v", i, id, got, want)
		}
	}
}
