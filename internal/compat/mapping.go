package compat

import (
	"fmt"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
)

const (
	mebi  = 1 << 20
	nanos = 1e9
	mega  = 1e6
)

// mapping defines how a DCGM field is computed from the families of this
// exporter.
type mapping struct {
	field dcgmfield.Field
	// sources are tried in order. The first source that the device has is used.
	sources []source
	// board restricts the field to whole boards, because an instance has only a
	// part of the value.
	board bool
	// label is set for a field with one series per link. It names the label of
	// the readings that identifies the link.
	label string
	// class is the class of devices that have the field; empty means GPU.
	class string
}

// mappings maps field ids to mappings. It is built on first use: most exporters
// never need it.
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

// from returns a mapping with sources.
func from(s ...source) mapping { return mapping{sources: s} }

// one returns a mapping to a family's readings with these labels, unchanged.
func one(m *collector.Metric, labels ...string) mapping { return from(times(1, m, labels...)) }

// share2 returns the source of a / (a + b).
func share2(query string, a, b *collector.Metric) source {
	return source{terms: []term{{metric: a}, {metric: b}}, combine: share, query: query}
}

// as returns s with another query.
func (s source) as(query string) source {
	s.query = query
	return s
}

// ofClass sets the class of all mappings.
func ofClass(class string, all map[string]mapping) map[string]mapping {
	for name, m := range all {
		m.class = class
		all[name] = m
	}
	return all
}

func faults() map[string]mapping {
	xid := source{
		terms: []term{{metric: collector.XidTimestamp, weigh: "xid"}}, combine: latest,
		query: "label `xid` of `topk by (device) (1, accel_gpu_xid_last_timestamp_seconds)`",
	}
	noXid := source{terms: []term{{metric: collector.XidErrors}}, combine: none, query: "0 while `accel_gpu_xid_errors_total` is 0"}
	out := map[string]mapping{
		"DEV_XID_ERRORS": {sources: []source{xid, noXid}, board: true},
		"DEV_GPU_RECOVERY_ACTION": from(state(collector.RecoveryAction, "action", map[string]float64{
			"none": 0, "reset": 1, "reboot": 2, "drain_p2p": 3, "drain_and_reset": 4, "recover_imex_domain": 5, "bus_reset": 6, "system_reboot": 7,
		})),
		"DEV_FABRIC_MANAGER_STATUS":       from(fabricManager()),
		"DEV_ECC_CURRENT":                 one(collector.ECCMode, "when", "current"),
		"DEV_ECC_PENDING":                 one(collector.ECCMode, "when", "pending"),
		"DEV_THRESHOLD_SRM":               one(collector.SRAMThreshold),
		"DEV_MEMORY_UNREPAIRABLE_FLAG":    one(collector.MemoryUnrepairable),
		"DEV_INFOROM_CONFIG_VALID":        one(collector.InforomValid),
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

// fabricManager returns the source of DCGM's state of the registration with the
// fabric: a completed one has succeeded or failed.
func fabricManager() source {
	s := source{any: true, combine: code, query: "1 and 2 for `accel_gpu_fabric_state` not_started and in_progress; if completed, 3 for `accel_gpu_fabric_status{status=\"success\"} == 1`, else 4"}
	s.terms = []term{
		{metric: collector.FabricStatus, labels: []string{"status", "success"}, weight: 3},
		{metric: collector.FabricState, labels: []string{"state", "not_started"}, weight: 1},
		{metric: collector.FabricState, labels: []string{"state", "in_progress"}, weight: 2},
		{metric: collector.FabricState, labels: []string{"state", "completed"}, weight: 4},
	}
	return s
}

func links() map[string]mapping {
	counted := func(kind string) mapping { return one(collector.NVLinkErrors, "type", kind) }
	out := map[string]mapping{
		"DEV_NVLINK_BANDWIDTH_TOTAL": from(total(times(1/mega, collector.NVLinkTransmitRate), times(1/mega, collector.NVLinkReceiveRate)).as(
			"(accel_nvlink_transmit_bytes_per_second + accel_nvlink_receive_bytes_per_second) / 1e6")),
		"DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND": from(total(times(1, collector.NVLinkTransmitRate), times(1, collector.NVLinkReceiveRate))),
		"DEV_NVLINK_TX_BANDWIDTH_TOTAL":          from(times(1/mega, collector.NVLinkTransmitRate)),
		"DEV_NVLINK_RX_BANDWIDTH_TOTAL":          from(times(1/mega, collector.NVLinkReceiveRate)),
		"DEV_NVLINK_TX_BYTES_TOTAL":              one(collector.NVLinkTransmit),
		"DEV_NVLINK_RX_BYTES_TOTAL":              one(collector.NVLinkReceive),
		"DEV_NVLINK_CRC_ERROR_TOTAL":             counted("crc"),
		"DEV_NVLINK_REPLAY_TOTAL":                counted("replay"),
		"DEV_NVLINK_RECOVERY_TOTAL":              counted("recovery"),

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

// perLink returns the fields that describe one link: fields with the link
// number in their name, and fields with one series per link.
func perLink() map[string]mapping {
	out := map[string]mapping{"DEV_NVLINK_LINK_STATUS": {sources: []source{times(1, collector.NVLinkUp)}, label: "link"}}
	for name, kind := range map[string]string{"CRC_FLIT": "crc", "REPLAY": "replay", "RECOVERY": "recovery"} {
		out["DEV_NVLINK_"+name+"_ERROR_PER_LINK_TOTAL"] = mapping{sources: []source{times(1, collector.NVLinkErrors, "type", kind)}, label: "link"}
		for n := range 18 {
			link := fmt.Sprint(n)
			out["DEV_NVLINK_"+name+"_ERROR_L"+link+"_TOTAL"] = one(collector.NVLinkErrors, "link", link, "type", kind)
		}
	}
	return out
}

// switches returns the fields of NVSwitches and their links, which only DCGM
// reports.
func switches() map[string]mapping {
	out := map[string]mapping{
		"DEV_NVSWITCH_TEMPERATURE_CURRENT":        one(collector.TemperatureCelsius, "sensor", "switch"),
		"DEV_NVSWITCH_TEMPERATURE_LIMIT_SLOWDOWN": one(collector.TemperatureLimit, "sensor", "switch", "limit", "slowdown"),
		"DEV_NVSWITCH_TEMPERATURE_LIMIT_SHUTDOWN": one(collector.TemperatureLimit, "sensor", "switch", "limit", "shutdown"),
		"DEV_NVSWITCH_RESET_REQUIRED":             one(collector.NVSwitchResetRequired),
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
		"DEV_CPU_TEMP_CURRENT":       one(collector.TemperatureCelsius, "sensor", "cpu"),
		"DEV_CPU_TEMP_WARNING":       one(collector.TemperatureLimit, "sensor", "cpu", "limit", "warning"),
		"DEV_CPU_TEMP_CRITICAL":      one(collector.TemperatureLimit, "sensor", "cpu", "limit", "critical"),
		"DEV_CPU_POWER_UTIL_CURRENT": one(collector.PowerWatts),
		"DEV_CPU_POWER_LIMIT":        one(collector.PowerLimit, "limit", "enforced"),
	})
}
