package compat

import (
	"github.com/accel-exporter/accel-exporter/collector"
)

func sensors() map[string]mapping {
	clock := func(name string, factor float64) mapping {
		return from(times(factor, collector.ClockHertz, "clock", name))
	}
	clockMax := func(name string, factor float64) mapping {
		return from(times(factor, collector.ClockMax, "clock", name))
	}
	limit := func(name string) mapping { return one(collector.PowerLimit, "limit", name) }
	temperature := func(sensor, limit string) mapping {
		return one(collector.TemperatureLimit, "sensor", sensor, "limit", limit)
	}
	throttledIn := func(factor float64, reasons ...string) source {
		parts := make([]source, len(reasons))
		for i, r := range reasons {
			parts[i] = times(factor, collector.ThrottleSeconds, "reason", r)
		}
		return total(parts...)
	}
	throttled := func(reasons ...string) source { return throttledIn(nanos, reasons...) }
	seconds := func(reasons ...string) source { return throttledIn(1, reasons...) }
	used := func(engine string, factor float64) mapping {
		return from(times(factor, collector.UtilizationRatio, "engine", engine))
	}
	return map[string]mapping{
		"DEV_GPU_UTIL":          used("compute", 100),
		"DEV_MEM_COPY_UTIL":     used("memory", 100),
		"DEV_ENC_UTIL":          used("encoder", 100),
		"DEV_DEC_UTIL":          used("decoder", 100),
		"DEV_GPU_UTIL_RATIO":    used("compute", 1),
		"DEV_MEMORY_UTIL_RATIO": used("memory", 1),
		"DEV_ENC_UTIL_RATIO":    used("encoder", 1),
		"DEV_DEC_UTIL_RATIO":    used("decoder", 1),

		"DEV_SM_CLOCK":               clock("sm", 1/mega),
		"DEV_MEM_CLOCK":              clock("memory", 1/mega),
		"DEV_VIDEO_CLOCK":            clock("video", 1/mega),
		"DEV_SM_CLOCK_HERTZ":         clock("sm", 1),
		"DEV_MEMORY_CLOCK_HERTZ":     clock("memory", 1),
		"DEV_VIDEO_CLOCK_HERTZ":      clock("video", 1),
		"DEV_MAX_SM_CLOCK":           clockMax("sm", 1/mega),
		"DEV_MAX_MEM_CLOCK":          clockMax("memory", 1/mega),
		"DEV_MAX_VIDEO_CLOCK":        clockMax("video", 1/mega),
		"DEV_SM_MAX_CLOCK_HERTZ":     clockMax("sm", 1),
		"DEV_MEMORY_MAX_CLOCK_HERTZ": clockMax("memory", 1),
		"DEV_VIDEO_MAX_CLOCK_HERTZ":  clockMax("video", 1),

		"DEV_GPU_TEMP":        one(collector.TemperatureCelsius, "sensor", "gpu"),
		"DEV_MEMORY_TEMP":     one(collector.TemperatureCelsius, "sensor", "memory"),
		"DEV_MEM_MAX_OP_TEMP": temperature("memory", "max_operating"),
		"DEV_GPU_MAX_OP_TEMP": temperature("gpu", "max_operating"),
		"DEV_SLOWDOWN_TEMP":   temperature("gpu", "slowdown"),
		"DEV_SHUTDOWN_TEMP":   temperature("gpu", "shutdown"),

		"DEV_POWER_USAGE":              from(times(1, collector.PowerAverage), times(1, collector.PowerWatts)),
		"DEV_POWER_USAGE_INSTANT":      one(collector.PowerWatts),
		"DEV_TOTAL_ENERGY_CONSUMPTION": from(times(1000, collector.EnergyJoules)),
		"DEV_GPU_ENERGY_JOULES_TOTAL":  one(collector.EnergyJoules),
		"DEV_POWER_MGMT_LIMIT":         limit("requested"),
		"DEV_POWER_MGMT_LIMIT_MIN":     limit("min"),
		"DEV_POWER_MGMT_LIMIT_MAX":     limit("max"),
		"DEV_POWER_MGMT_LIMIT_DEF":     limit("default"),
		"DEV_ENFORCED_POWER_LIMIT":     limit("enforced"),

		"DEV_POWER_VIOLATION":                                from(throttled("sw_power_cap")),
		"DEV_THERMAL_VIOLATION":                              from(throttled("thermal"), throttled("sw_thermal", "hw_thermal")),
		"DEV_SYNC_BOOST_VIOLATION":                           from(throttled("sync_boost")),
		"DEV_BOARD_LIMIT_VIOLATION":                          from(throttled("board_limit")),
		"DEV_RELIABILITY_VIOLATION":                          from(throttled("reliability")),
		"DEV_TOTAL_APP_CLOCKS_VIOLATION":                     from(throttled("below_app_clocks")),
		"DEV_TOTAL_BASE_CLOCKS_VIOLATION":                    from(throttled("below_base_clocks")),
		"DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS":            from(throttled("sw_power_cap")),
		"DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS":              from(throttled("sync_boost")),
		"DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS":       from(throttled("sw_thermal")),
		"DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS":       from(throttled("hw_thermal")),
		"DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS": from(throttled("hw_power_brake")),

		"DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL":       from(seconds("sw_power_cap")),
		"DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL":     from(seconds("thermal"), seconds("sw_thermal", "hw_thermal")),
		"DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL":  from(seconds("sync_boost")),
		"DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL":       from(seconds("board_limit")),
		"DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL": from(seconds("reliability")),
		"DEV_GPU_APP_THROTTLE_SECONDS_TOTAL":         from(seconds("below_app_clocks")),
		"DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL":        from(seconds("below_base_clocks")),

		"DEV_FAN_SPEED":           from(times(100, collector.FanRatio, "fan", "0")),
		"DEV_FAN_SPEED_RATIO":     one(collector.FanRatio, "fan", "0"),
		"DEV_VGPU_LICENSE_STATUS": one(collector.VGPULicensed),

		"DEV_PSTATE":           one(collector.PerformanceState),
		"DEV_PERSISTENCE_MODE": one(collector.PersistenceMode),
		"DEV_MIG_MODE":         one(collector.MIGMode, "when", "current"),
		"DEV_COMPUTE_MODE":     from(state(collector.ComputeMode, "mode", map[string]float64{"default": 0, "prohibited": 2, "exclusive_process": 3})),
		"DEV_PWR_SMOOTHING_HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING": from(times(100, collector.PowerSmoothingLifetime)),
	}
}

func memory() map[string]mapping {
	ratio := share2("accel_memory_used_bytes / (accel_memory_used_bytes + accel_memory_free_bytes)", collector.MemoryUsed, collector.MemoryFree)
	free := func(factor float64) mapping {
		return from(total(times(factor, collector.BAR1Total), times(-factor, collector.BAR1Used)).as("(accel_gpu_bar1_memory_total_bytes - accel_gpu_bar1_memory_used_bytes)" + scale(factor)))
	}
	return map[string]mapping{
		"DEV_FB_TOTAL":            from(times(1./mebi, collector.MemoryTotal)),
		"DEV_FB_FREE":             from(times(1./mebi, collector.MemoryFree)),
		"DEV_FB_USED":             from(times(1./mebi, collector.MemoryUsed)),
		"DEV_FB_RESERVED":         from(times(1./mebi, collector.MemoryReserved)),
		"DEV_FB_USED_PERCENT":     from(ratio),
		"DEV_FB_CAPACITY_BYTES":   one(collector.MemoryTotal),
		"DEV_FB_FREE_BYTES":       one(collector.MemoryFree),
		"DEV_FB_USED_BYTES":       one(collector.MemoryUsed),
		"DEV_FB_RESERVED_BYTES":   one(collector.MemoryReserved),
		"DEV_BAR1_TOTAL":          from(times(1./mebi, collector.BAR1Total)),
		"DEV_BAR1_USED":           from(times(1./mebi, collector.BAR1Used)),
		"DEV_BAR1_FREE":           free(1. / mebi),
		"DEV_BAR1_CAPACITY_BYTES": one(collector.BAR1Total),
		"DEV_BAR1_USED_BYTES":     one(collector.BAR1Used),
		"DEV_BAR1_FREE_BYTES":     free(1),

		"DEV_PCIE_TX_THROUGHPUT":   from(times(1./1000, collector.PCIeTransmitRate)),
		"DEV_PCIE_RX_THROUGHPUT":   from(times(1./1000, collector.PCIeReceiveRate)),
		"DEV_PCIE_REPLAY_COUNTER":  one(collector.PCIeReplays),
		"DEV_PCIE_MAX_LINK_GEN":    one(collector.PCIeGenerationMax, "of", "slot"),
		"DEV_PCIE_MAX_LINK_WIDTH":  one(collector.PCIeWidthMax, "of", "device"),
		"DEV_PCIE_LINK_GEN":        one(collector.PCIeGeneration),
		"DEV_PCIE_LINK_WIDTH":      one(collector.PCIeWidth),
		"PROF_PCIE_TX_BYTES_TOTAL": one(collector.PCIeTransmit),
		"PROF_PCIE_RX_BYTES_TOTAL": one(collector.PCIeReceive),

		"DEV_PCIE_CORRECTABLE_ERROR_TOTAL": one(collector.PCIeErrors, "type", "correctable"),
	}
}

func profiling() map[string]mapping {
	out := map[string]mapping{
		"PROF_SM_OCCUPANCY":    one(collector.OccupancyRatio),
		"PROF_PCIE_TX_BYTES":   one(collector.PCIeTransmitRate),
		"PROF_PCIE_RX_BYTES":   one(collector.PCIeReceiveRate),
		"PROF_NVLINK_TX_BYTES": one(collector.NVLinkTransmitRate),
		"PROF_NVLINK_RX_BYTES": one(collector.NVLinkReceiveRate),
	}
	for name, unit := range map[string]string{
		"GR_ENGINE_ACTIVE": "graphics", "SM_ACTIVE": "sm", "DRAM_ACTIVE": "dram",
		"PIPE_TENSOR_ACTIVE": "tensor", "PIPE_TENSOR_IMMA_ACTIVE": "tensor_imma",
		"PIPE_TENSOR_HMMA_ACTIVE": "tensor_hmma", "PIPE_TENSOR_DFMA_ACTIVE": "tensor_dfma",
		"PIPE_INT_ACTIVE": "integer", "PIPE_FP64_ACTIVE": "fp64", "PIPE_FP32_ACTIVE": "fp32", "PIPE_FP16_ACTIVE": "fp16",
	} {
		out["PROF_"+name] = one(collector.ActivityRatio, "unit", unit)
	}
	return out
}
