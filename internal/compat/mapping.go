package compat

import (
	"fmt"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/dcgmfield"
)

const (
	mebi  = 1 << 20
	nanos = 1e9
	mega  = 1e6
)

// mapping says what a field of DCGM is called here.
type mapping struct {
	field dcgmfield.Field
	// sources are tried in order; the first that the device has is taken.
	sources []source
	// board: what an instance has of it is not the whole, so that only the
	// board is shown.
	board bool
	// label is the label of a reading that makes a series each: of links.
	label string
	// class of devices that have the field; empty for GPUs.
	class string
}

// mappings are by the id of the field. Most exporters never need them.
var mappings = sync.OnceValue(func() map[uint16]*mapping {
	all := map[uint16]*mapping{}
	for _, group := range []map[string]mapping{sensors(), memory(), profiling(), faults(), links(), perLink(), switches(), cpus()} {
		for name, m := range group {
			f, ok := dcgmfield.ByName("DCGM_FI_" + name)
			if !ok || all[f.ID] != nil {
				panic("compat: field " + name)
			}
			m.field = f
			all[f.ID] = &m
		}
	}
	return all
})

// from is a mapping by sources.
func from(s ...source) mapping { return mapping{sources: s} }

func sensors() map[string]mapping {
	clock := func(name string, factor float64) mapping {
		return from(times(factor, collector.ClockHertz, "clock", name))
	}
	clockMax := func(name string, factor float64) mapping {
		return from(times(factor, collector.ClockMax, "clock", name))
	}
	limit := func(name string) mapping { return from(times(1, collector.PowerLimit, "limit", name)) }
	temperature := func(sensor, limit string) mapping {
		return from(times(1, collector.TemperatureLimit, "sensor", sensor, "limit", limit))
	}
	throttled := func(reasons ...string) source {
		parts := make([]source, len(reasons))
		for i, r := range reasons {
			parts[i] = times(nanos, collector.ThrottleSeconds, "reason", r)
		}
		return total(parts...)
	}
	used := func(engine string) mapping { return from(times(100, collector.UtilizationRatio, "engine", engine)) }
	return map[string]mapping{
		"DEV_GPU_UTIL":      used("compute"),
		"DEV_MEM_COPY_UTIL": used("memory"),
		"DEV_ENC_UTIL":      used("encoder"),
		"DEV_DEC_UTIL":      used("decoder"),

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

		"DEV_GPU_TEMP":        from(times(1, collector.TemperatureCelsius, "sensor", "gpu")),
		"DEV_MEMORY_TEMP":     from(times(1, collector.TemperatureCelsius, "sensor", "memory")),
		"DEV_MEM_MAX_OP_TEMP": temperature("memory", "max_operating"),
		"DEV_GPU_MAX_OP_TEMP": temperature("gpu", "max_operating"),
		"DEV_SLOWDOWN_TEMP":   temperature("gpu", "slowdown"),
		"DEV_SHUTDOWN_TEMP":   temperature("gpu", "shutdown"),

		"DEV_POWER_USAGE":              from(times(1, collector.PowerAverage), times(1, collector.PowerWatts)),
		"DEV_POWER_USAGE_INSTANT":      from(times(1, collector.PowerWatts)),
		"DEV_TOTAL_ENERGY_CONSUMPTION": from(times(1000, collector.EnergyJoules)),
		"DEV_GPU_ENERGY_JOULES_TOTAL":  from(times(1, collector.EnergyJoules)),
		"DEV_POWER_MGMT_LIMIT":         limit("requested"),
		"DEV_POWER_MGMT_LIMIT_MIN":     limit("min"),
		"DEV_POWER_MGMT_LIMIT_MAX":     limit("max"),
		"DEV_POWER_MGMT_LIMIT_DEF":     limit("default"),
		"DEV_ENFORCED_POWER_LIMIT":     limit("enforced"),

		"DEV_POWER_VIOLATION":                                from(throttled("sw_power_cap")),
		"DEV_THERMAL_VIOLATION":                              from(throttled("thermal"), throttled("sw_thermal", "hw_thermal")),
		"DEV_SYNC_BOOST_VIOLATION":                           from(throttled("sync_boost")),
		"DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS":            from(throttled("sw_power_cap")),
		"DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS":              from(throttled("sync_boost")),
		"DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS":       from(throttled("sw_thermal")),
		"DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS":       from(throttled("hw_thermal")),
		"DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS": from(throttled("hw_power_brake")),

		"DEV_PSTATE":           from(times(1, collector.PerformanceState)),
		"DEV_PERSISTENCE_MODE": from(times(1, collector.PersistenceMode)),
		"DEV_MIG_MODE":         from(times(1, collector.MIGMode, "when", "current")),
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
		"DEV_BAR1_TOTAL":          from(times(1./mebi, collector.BAR1Total)),
		"DEV_BAR1_USED":           from(times(1./mebi, collector.BAR1Used)),
		"DEV_BAR1_FREE":           free(1. / mebi),
		"DEV_BAR1_CAPACITY_BYTES": from(times(1, collector.BAR1Total)),
		"DEV_BAR1_USED_BYTES":     from(times(1, collector.BAR1Used)),
		"DEV_BAR1_FREE_BYTES":     free(1),

		"DEV_PCIE_TX_THROUGHPUT":   from(times(1./1000, collector.PCIeTransmitRate)),
		"DEV_PCIE_RX_THROUGHPUT":   from(times(1./1000, collector.PCIeReceiveRate)),
		"DEV_PCIE_REPLAY_COUNTER":  from(times(1, collector.PCIeReplays)),
		"DEV_PCIE_MAX_LINK_GEN":    from(times(1, collector.PCIeGenerationMax, "of", "slot")),
		"DEV_PCIE_MAX_LINK_WIDTH":  from(times(1, collector.PCIeWidthMax)),
		"DEV_PCIE_LINK_GEN":        from(times(1, collector.PCIeGeneration)),
		"DEV_PCIE_LINK_WIDTH":      from(times(1, collector.PCIeWidth)),
		"PROF_PCIE_TX_BYTES_TOTAL": from(times(1, collector.PCIeTransmit)),
		"PROF_PCIE_RX_BYTES_TOTAL": from(times(1, collector.PCIeReceive)),

		"DEV_PCIE_CORRECTABLE_ERROR_TOTAL": from(times(1, collector.PCIeErrors, "type", "correctable")),
	}
}

func profiling() map[string]mapping {
	out := map[string]mapping{
		"PROF_SM_OCCUPANCY":    from(times(1, collector.OccupancyRatio)),
		"PROF_PCIE_TX_BYTES":   from(times(1, collector.PCIeTransmitRate)),
		"PROF_PCIE_RX_BYTES":   from(times(1, collector.PCIeReceiveRate)),
		"PROF_NVLINK_TX_BYTES": from(times(1, collector.NVLinkTransmitRate)),
		"PROF_NVLINK_RX_BYTES": from(times(1, collector.NVLinkReceiveRate)),
	}
	for name, unit := range map[string]string{
		"GR_ENGINE_ACTIVE": "graphics", "SM_ACTIVE": "sm", "DRAM_ACTIVE": "dram",
		"PIPE_TENSOR_ACTIVE": "tensor", "PIPE_TENSOR_IMMA_ACTIVE": "tensor_imma",
		"PIPE_TENSOR_HMMA_ACTIVE": "tensor_hmma", "PIPE_TENSOR_DFMA_ACTIVE": "tensor_dfma",
		"PIPE_INT_ACTIVE": "integer", "PIPE_FP64_ACTIVE": "fp64", "PIPE_FP32_ACTIVE": "fp32", "PIPE_FP16_ACTIVE": "fp16",
	} {
		out["PROF_"+name] = from(times(1, collector.ActivityRatio, "unit", unit))
	}
	return out
}

func faults() map[string]mapping {
	one := func(m *collector.Metric, labels ...string) mapping { return from(times(1, m, labels...)) }
	xid := source{
		terms: []term{{metric: collector.XidTimestamp, weigh: "xid"}}, combine: latest,
		query: "label xid of topk by (device) (1, accel_gpu_xid_last_timestamp_seconds)",
	}
	noXid := source{terms: []term{{metric: collector.XidErrors}}, combine: none, query: "0 while accel_gpu_xid_errors_total is"}
	out := map[string]mapping{
		"DEV_XID_ERRORS": {sources: []source{xid, noXid}, board: true},
		"DEV_GPU_RECOVERY_ACTION": from(state(collector.RecoveryAction, "action", map[string]float64{
			"none": 0, "reset": 1, "reboot": 2, "drain_p2p": 3, "drain_and_reset": 4, "recover_imex_domain": 5,
		})),
		"DEV_ECC_CURRENT":                 one(collector.ECCMode, "when", "current"),
		"DEV_ECC_PENDING":                 one(collector.ECCMode, "when", "pending"),
		"DEV_THRESHOLD_SRM":               one(collector.SRAMThreshold),
		"DEV_RETIRED_SBE":                 one(collector.RetiredPages, "cause", "corrected"),
		"DEV_RETIRED_DBE":                 one(collector.RetiredPages, "cause", "uncorrected"),
		"DEV_RETIRED_PENDING":             one(collector.RetiredPagesPending),
		"DEV_UNCORRECTABLE_REMAPPED_ROWS": one(collector.RowRemaps, "cause", "uncorrected"),
		"DEV_CORRECTABLE_REMAPPED_ROWS":   one(collector.RowRemaps, "cause", "corrected"),
		"DEV_ROW_REMAP_FAILURE":           one(collector.RowRemapFailed),
		"DEV_ROW_REMAP_PENDING":           one(collector.RowRemapPending),
	}
	for _, spare := range []string{"max", "high", "partial", "low", "none"} {
		out["DEV_BANKS_REMAP_ROWS_AVAIL_"+strings.ToUpper(spare)] = one(collector.RowRemapBanks, "spare", spare)
	}
	for short, severity := range map[string]string{"SBE": "corrected", "DBE": "uncorrected"} {
		for life, m := range map[string]*collector.Metric{"VOL": collector.ECCErrors, "AGG": collector.ECCAggregateErrors} {
			name := "DEV_ECC_" + short + "_" + life + "_"
			out[name+"TOTAL"] = mapping{sources: []source{times(1, m, "severity", severity)}, board: true}
			for where, location := range map[string]string{
				"L1": "l1_cache", "L2": "l2_cache", "DEV": "dram", "REG": "register_file",
				"TEX": "texture_memory", "SHM": "texture_shm", "CBU": "cbu", "SRM": "sram",
			} {
				out[name+where] = mapping{sources: []source{times(1, m, "severity", severity, "location", location)}, board: true}
			}
		}
	}
	return out
}

func links() map[string]mapping {
	counted := func(kind string) mapping { return from(times(1, collector.NVLinkErrors, "type", kind)) }
	out := map[string]mapping{
		"DEV_NVLINK_BANDWIDTH_TOTAL": from(total(times(1/mega, collector.NVLinkTransmitRate), times(1/mega, collector.NVLinkReceiveRate)).as(
			"(accel_nvlink_transmit_bytes_per_second + accel_nvlink_receive_bytes_per_second) / 1e6")),
		"DEV_NVLINK_TX_BANDWIDTH_TOTAL": from(times(1/mega, collector.NVLinkTransmitRate)),
		"DEV_NVLINK_RX_BANDWIDTH_TOTAL": from(times(1/mega, collector.NVLinkReceiveRate)),
		"DEV_NVLINK_TX_BYTES_TOTAL":     from(times(1, collector.NVLinkTransmit)),
		"DEV_NVLINK_RX_BYTES_TOTAL":     from(times(1, collector.NVLinkReceive)),
		"DEV_NVLINK_CRC_ERROR_TOTAL":    counted("crc"),
		"DEV_NVLINK_REPLAY_TOTAL":       counted("replay"),
		"DEV_NVLINK_RECOVERY_TOTAL":     counted("recovery"),

		"DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": counted("crc"),
		"DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL":   counted("replay"),
		"DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": counted("recovery"),
	}
	for name, kind := range map[string]string{
		"RX_PACKET_MALFORMED": "malformed_packet", "RX_PACKET_DROPPED": "buffer_overrun", "RX_ERROR": "receive",
		"RX_REMOTE_ERROR": "receive_remote", "RX_GENERAL_ERROR": "receive_general", "INTEGRITY_ERROR": "local_integrity",
		"TX_DISCARD": "transmit_discard", "RECOVERY_SUCCESSFUL": "recovery_successful", "RECOVERY_FAILED": "recovery_failed",
		"RX_SYMBOL_ERROR": "symbol", "EFFECTIVE_ERROR": "effective",
	} {
		out["DEV_NVLINK_"+name+"_TOTAL"] = counted(kind)
	}
	return out
}

// perLink are the fields of one link each, and those of a link as an entity.
func perLink() map[string]mapping {
	out := map[string]mapping{"DEV_NVLINK_LINK_STATUS": {sources: []source{times(1, collector.NVLinkUp)}, label: "link"}}
	for name, kind := range map[string]string{"CRC_FLIT": "crc", "REPLAY": "replay", "RECOVERY": "recovery"} {
		out["DEV_NVLINK_"+name+"_ERROR_PER_LINK_TOTAL"] = mapping{sources: []source{times(1, collector.NVLinkErrors, "type", kind)}, label: "link"}
		for n := range 18 {
			link := fmt.Sprint(n)
			out["DEV_NVLINK_"+name+"_ERROR_L"+link+"_TOTAL"] = from(times(1, collector.NVLinkErrors, "link", link, "type", kind))
		}
	}
	return out
}

// switches are what DCGM alone tells of NVSwitches and their links.
func switches() map[string]mapping {
	out := map[string]mapping{
		"DEV_NVSWITCH_TEMPERATURE_CURRENT":        from(times(1, collector.TemperatureCelsius, "sensor", "switch")),
		"DEV_NVSWITCH_TEMPERATURE_LIMIT_SLOWDOWN": from(times(1, collector.TemperatureLimit, "sensor", "switch", "limit", "slowdown")),
		"DEV_NVSWITCH_TEMPERATURE_LIMIT_SHUTDOWN": from(times(1, collector.TemperatureLimit, "sensor", "switch", "limit", "shutdown")),
		"DEV_NVSWITCH_RESET_REQUIRED":             from(times(1, collector.NVSwitchResetRequired)),
	}
	for name, kind := range map[string]string{
		"FATAL_ERRORS": "fatal", "NON_FATAL_ERRORS": "non_fatal", "REPLAY_ERRORS": "replay", "RECOVERY_ERRORS": "recovery",
		"FLIT_ERRORS": "flit", "CRC_ERRORS": "crc", "ECC_ERRORS": "ecc",
	} {
		out["DEV_NVSWITCH_LINK_"+name] = mapping{sources: []source{times(1, collector.NVLinkErrors, "type", kind)}, label: "link"}
	}
	return ofClass(classSwitch, out)
}

// cpus are what DCGM alone tells of Grace CPUs. Their utilization is by core
// there, so that it is taken as DCGM told it.
func cpus() map[string]mapping {
	return ofClass(classCPU, map[string]mapping{
		"DEV_CPU_TEMP_CURRENT":       from(times(1, collector.TemperatureCelsius, "sensor", "cpu")),
		"DEV_CPU_TEMP_WARNING":       from(times(1, collector.TemperatureLimit, "sensor", "cpu", "limit", "warning")),
		"DEV_CPU_TEMP_CRITICAL":      from(times(1, collector.TemperatureLimit, "sensor", "cpu", "limit", "critical")),
		"DEV_CPU_POWER_UTIL_CURRENT": from(times(1, collector.PowerWatts)),
		"DEV_CPU_POWER_LIMIT":        from(times(1, collector.PowerLimit, "limit", "enforced")),
	})
}

func ofClass(class string, all map[string]mapping) map[string]mapping {
	for name, m := range all {
		m.class = class
		all[name] = m
	}
	return all
}

// share2 is a as a part of a and b.
func share2(query string, a, b *collector.Metric) source {
	return source{terms: []term{{metric: a}, {metric: b}}, combine: share, query: query}
}

// as gives s another query.
func (s source) as(query string) source {
	s.query = query
	return s
}
