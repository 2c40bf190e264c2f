package dcgmfield

import (
	"slices"
	"testing"
)

func TestFieldsByName(t *testing.T) {
	for _, c := range []struct {
		names  []string
		id     uint16
		typ    Type
		unit   string
		kind   Kind
		entity Entity
	}{
		{[]string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "dcgm_gpu_temp"}, 150, Int64, "celsius", Gauge, GPU},
		{[]string{"DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_utilization"}, 203, Int64, "percent", Gauge, GPU},
		{[]string{"DCGM_FI_DEV_GPU_UTIL_RATIO"}, 1613, Double, "ratio", Gauge, GPU},
		{[]string{"DCGM_FI_DEV_NVLINK_THROUGHPUT_L17_BYTES_PER_SECOND"}, 1647, Int64, "bytes_per_second", Gauge, GPU},
		{[]string{"DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage"}, 155, Double, "watts", Gauge, GPU},
		{[]string{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}, 156, Int64, "millijoules", Counter, GPU},
		{[]string{"DCGM_FI_DEV_FB_TOTAL"}, 250, Int64, "mebibytes", Gauge, ComputeInstance},
		{[]string{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "dcgm_nvlink_bandwidth_total"}, 449, Int64, "megabytes_per_second", Gauge, GPU},
		{[]string{"DCGM_FI_DEV_XID_ERRORS"}, 230, Int64, "", Gauge, ComputeInstance},
		{[]string{"DCGM_FI_DEV_ECC_DBE_VOL_L2"}, 317, Int64, "", Counter, GPU},
		{[]string{"DCGM_FI_DEV_THERMAL_VIOLATION"}, 241, Int64, "nanoseconds", Counter, GPU},
		{[]string{"DCGM_FI_PROF_GR_ENGINE_ACTIVE"}, 1001, Double, "ratio", Gauge, ComputeInstance},
		{[]string{"DCGM_FI_PROF_PCIE_TX_BYTES"}, 1009, Int64, "bytes_per_second", Gauge, GPU},
		{[]string{"DCGM_FI_DRIVER_VERSION"}, 1, String, "", Info, Node},
		{[]string{"DCGM_FI_DEV_CPU_UTIL_TOTAL"}, 1100, Double, "ratio", Gauge, CPUCore},
		{[]string{"DCGM_FI_DEV_NVSWITCH_LINK_FATAL_ERRORS"}, 782, Int64, "", Counter, Link},
		{[]string{"DCGM_FI_DEV_ACCOUNTING_DATA"}, 205, Binary, "", None, GPU},
		{[]string{"DCGM_FI_DEV_FAN_SPEED_RATIO"}, 1612, Double, "ratio", Gauge, GPU},
	} {
		for _, name := range c.names {
			f, ok := ByName(name)
			if !ok || f.ID != c.id || f.Type != c.typ || f.Unit != c.unit || f.Kind != c.kind || f.Entity != c.entity {
				t.Errorf("%s: %+v, want %+v", name, f, c)
			}
		}
		if f, ok := ByID(c.id); !ok || f.ID != c.id {
			t.Errorf("field %d: %+v", c.id, f)
		}
	}
	if _, ok := ByName("DCGM_FI_DEV_NO_SUCH_FIELD"); ok {
		t.Error("a field that does not exist is found")
	}
	if _, ok := ByID(0); ok {
		t.Error("field 0 is found")
	}
}

func TestTableIsWhole(t *testing.T) {
	all := All()
	if len(all) < 600 {
		t.Errorf("%d fields", len(all))
	}
	names := map[string]uint16{}
	for _, f := range all {
		for _, n := range append([]string{f.Name}, f.Former...) {
			if id, twice := names[n]; twice {
				t.Errorf("%s means fields %d and %d", n, id, f.ID)
			}
			names[n] = f.ID
		}
		switch f.Kind {
		case Gauge, Counter:
			if f.Type != Int64 && f.Type != Double {
				t.Errorf("%s is a %s of type %s", f.Name, f.Kind, f.Type)
			}
		case Info:
			if f.Type != String || f.Unit != "" {
				t.Errorf("%s: %+v", f.Name, f)
			}
		case None:
			if f.Type != Binary {
				t.Errorf("%s: %+v", f.Name, f)
			}
		default:
			t.Errorf("%s has kind %q", f.Name, f.Kind)
		}
		if !slices.Contains([]Entity{Node, GPU, GPUInstance, ComputeInstance, VGPU, Switch, Link, CPU, CPUCore, ConnectX}, f.Entity) {
			t.Errorf("%s describes %q", f.Name, f.Entity)
		}
	}
}
