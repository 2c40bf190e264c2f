package compat

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

func faults() map[string]mapping {
	one := func(m *collector.Metric, labels ...string) mapping { return from(times(1, m, labels...)) }
	xid := source{
		terms: []term{{metric: collector.XidTimestamp, weigh: "xid"}}, combine: latest,
		query: "label `xid` of `topk by (device) (1, accel_gpu_xid_last_timestamp_seconds)`",
	}
	noXid := source{terms: []term{{metric: collector.XidErrors}}, combine: none, query: "0 while `accel_gpu_xid_errors_total` is 0"}
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
