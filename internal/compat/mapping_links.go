package compat

import (
	"fmt"

	"github.com/accel-exporter/accel-exporter/collector"
)

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

// perLink returns the fields that describe one link: those with the link number
// in their name, and those with one series per link.
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

// switches returns the fields of NVSwitches and their links, which only DCGM
// reports.
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

// cpus returns the fields of Grace CPUs, which only DCGM reports. Utilization is
// not among them: DCGM reports it per core, and raw exports it unchanged.
func cpus() map[string]mapping {
	return ofClass(classCPU, map[string]mapping{
		"DEV_CPU_TEMP_CURRENT":       from(times(1, collector.TemperatureCelsius, "sensor", "cpu")),
		"DEV_CPU_TEMP_WARNING":       from(times(1, collector.TemperatureLimit, "sensor", "cpu", "limit", "warning")),
		"DEV_CPU_TEMP_CRITICAL":      from(times(1, collector.TemperatureLimit, "sensor", "cpu", "limit", "critical")),
		"DEV_CPU_POWER_UTIL_CURRENT": from(times(1, collector.PowerWatts)),
		"DEV_CPU_POWER_LIMIT":        from(times(1, collector.PowerLimit, "limit", "enforced")),
	})
}
