package sim

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// children are the programs that the tests run against the library, each with
// one unmodified go-nvml; what they return the test compares.
var children map[string]func(nvml.Interface) (map[string]any, error)

func init() {
	children = map[string]func(nvml.Interface) (map[string]any, error){
		"values": values,
		"init":   initOnly,
	}
}

func initOnly(lib nvml.Interface) (map[string]any, error) {
	return map[string]any{"init": int(lib.Init())}, nil
}

func values(lib nvml.Interface) (map[string]any, error) {
	if err := check(lib.Init(), "init"); err != nil {
		return nil, err
	}
	out := map[string]any{}
	n, ret := lib.DeviceGetCount()
	if err := check(ret, "count"); err != nil {
		return nil, err
	}
	out["count"] = n
	out["driver"], _ = lib.SystemGetDriverVersion()
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			out[fmt.Sprint(i, " handle")] = int(ret)
			continue
		}
		p := fmt.Sprint(i, " ")
		out[p+"name"], _ = d.GetName()
		out[p+"temperature"], ret = d.GetTemperature(nvml.TEMPERATURE_GPU)
		out[p+"temperature ret"] = int(ret)
		out[p+"power"], _ = d.GetPowerUsage()
		out[p+"energy"], _ = d.GetTotalEnergyConsumption()
		u, ret := d.GetUtilizationRates()
		out[p+"util"], out[p+"util ret"] = u.Gpu, int(ret)
		m, _ := d.GetMemoryInfo_v2()
		out[p+"memory"] = m.Used
		procs, ret := d.GetComputeRunningProcesses()
		out[p+"processes"], out[p+"processes ret"] = len(procs), int(ret)
	}
	return out, nil
}
