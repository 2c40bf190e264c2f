package health_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

// news and facts keep the test cases short.
func news(e ...collector.Event) []collector.Event { return e }
func facts(f ...fact) []fact                      { return f }

func hang(more ...func(*collector.Event)) collector.Event {
	return event(collector.EventHang, more...)
}

// loaded is a load of the driver for the device of the test cases.
var loaded = event(collector.EventDriverLoaded)

var cases = []history{
	{"healthy", []step{{want: "healthy none"}}},
	{"no source has sampled", []step{
		{facts: facts(unseen), want: "unknown none no_answer"},
		{after: second, want: "healthy none"},
		{after: second, facts: facts(unseen), want: "unknown none no_answer"},
	}},

	{"application errors", []step{
		{news: news(xid(13), xid(31), xid(43), xid(45), xid(69), xid(137), xid(8), xid(39)), want: "healthy none"},
	}},
	{"a test injects an error", []step{{news: news(xid(14)), want: "healthy none"}}},
	{"unknown code", []step{
		{news: news(xid(777)), want: "degraded inspect xid_unknown"},
		{after: hour - second, want: "degraded inspect xid_unknown"},
		{after: second, want: "healthy none"},
	}},
	{"NVML does not report the number", []step{{news: news(xid(999)), want: "degraded inspect xid_unknown"}}},

	{"uncontained error on a driver without recovery action, then a reset", []step{
		{facts: facts(set(collector.EnergyJoules, 5000)), want: "healthy none"},
		{after: second, facts: facts(set(collector.EnergyJoules, 5100)), news: news(xid(95)), want: "failed reset xid_95"},
		{after: 24 * hour, facts: facts(set(collector.EnergyJoules, 9000)), want: "failed reset xid_95"},
		{after: minute, facts: facts(set(collector.EnergyJoules, 10)), want: "healthy none"},
	}},
	{"counters that do not change or are not read are no reset", []step{
		{facts: facts(set(collector.EnergyJoules, 100), eccs(2, 0), set(collector.RowRemapPending, 1)), want: "degraded reset ecc_uncorrected row_remap_pending"},
		{after: minute, news: news(xid(119)), facts: facts(set(collector.EnergyJoules, 100), eccs(2, 0), set(collector.RowRemapPending, 1)), want: "failed reset xid_119 ecc_uncorrected row_remap_pending"},
		{after: minute, facts: facts(set(collector.EnergyJoules, 100), eccs(2, 0), set(collector.RowRemapPending, 1)), want: "failed reset xid_119 ecc_uncorrected row_remap_pending"},
		{after: minute, facts: facts(eccs(1)), want: "failed reset xid_119 ecc_uncorrected"},
		{after: minute, want: "failed reset xid_119"},
		{after: minute, facts: facts(eccs(0, 0)), want: "failed reset xid_119"},
		{after: minute, facts: facts(set(collector.EnergyJoules, 0)), want: "failed reset xid_119"},
		{after: minute, facts: facts(set(collector.EnergyJoules, 100)), want: "failed reset xid_119"},
		{after: minute, facts: facts(set(collector.EnergyJoules, 0)), want: "healthy none"},
	}},
	{"a fault that remains after a reset", []step{
		{facts: facts(set(collector.EnergyJoules, 100), driver("reset")), news: news(xid(119)), want: "failed reset recovery_action_reset xid_119"},
		{after: minute, facts: facts(set(collector.EnergyJoules, 1), driver("reset")), want: "failed reset recovery_action_reset"},
	}},
	{"the end of pending repairs is a reset", []step{
		{facts: facts(set(collector.RowRemapPending, 0), set(collector.RepairPending, 1, "tpc")), news: news(xid(119)), want: "failed reset xid_119 repair_pending"},
		{after: minute, facts: facts(set(collector.RowRemapPending, 0), set(collector.RepairPending, 0, "tpc")), want: "healthy none"},
	}},
	{"a reset does not end a later fault", []step{
		{facts: facts(set(collector.EnergyJoules, 100)), want: "healthy none"},
		{after: minute, news: news(xid(119, earlier(5*second))), facts: facts(set(collector.EnergyJoules, 10)), want: "failed reset xid_119"},
		{after: minute, news: news(xid(119, earlier(30*second)), xid(120, earlier(5*second))), facts: facts(set(collector.EnergyJoules, 5)), want: "failed reset xid_120"},
	}},
	{"the driver recommends a reset, and the reset ends the fault", []step{
		{facts: facts(driver("none")), want: "healthy none"},
		{after: second, facts: facts(driver("reset")), news: news(xid(95)), want: "failed reset recovery_action_reset xid_95"},
		{after: hour, facts: facts(driver("reset")), want: "failed reset recovery_action_reset xid_95"},
		{after: minute, facts: facts(driver("none")), want: "healthy none"},
	}},
	{"the driver's action takes precedence over the catalogue's", []step{
		{
			facts: facts(driver("drain_and_reset"), set(collector.RowRemapFailed, 1)), news: news(xid(79)),
			want: "failed drain_and_reset xid_79 row_remap_failed recovery_action_drain_and_reset",
		},
	}},
	{"the driver recommends no action after the event", []step{
		{facts: facts(driver("none")), news: news(xid(95)), want: "failed reset xid_95"},
		{after: 29 * second, facts: facts(driver("none")), want: "failed reset xid_95"},
		{after: second, facts: facts(driver("none")), want: "degraded reset xid_95"},
		{after: second, facts: facts(driver("none")), news: news(xid(95)), want: "failed reset xid_95"},
	}},
	{"the driver lets work end after the event", []step{
		{facts: facts(driver("drain_and_reset")), news: news(xid(95)), want: "failed drain_and_reset xid_95 recovery_action_drain_and_reset"},
		{after: 30 * second, facts: facts(driver("drain_and_reset")), want: "degraded drain_and_reset recovery_action_drain_and_reset xid_95"},
		{after: second, facts: facts(driver("reset")), want: "failed reset recovery_action_reset xid_95"},
	}},
	{"the log reports with the event that the driver lets work end", []step{
		{facts: facts(driver("none")), news: news(xid(48), xid(154, asks("drain_and_reset"))), want: "degraded drain_and_reset recovery_action_drain_and_reset xid_48"},
		{after: second, facts: facts(driver("none")), news: news(xid(95)), want: "failed drain_and_reset xid_95 recovery_action_drain_and_reset xid_48"},
	}},
	{"codes that the driver's action does not change", []step{
		{facts: facts(driver("none")), news: news(xid(119)), want: "failed reset xid_119"},
		{after: hour, facts: facts(driver("none")), want: "failed reset xid_119"},
	}},
	{"each action of the driver", []step{
		{facts: facts(driver("reboot")), want: "failed reboot recovery_action_reboot"},
		{after: minute, facts: facts(driver("drain_p2p")), want: "degraded drain_p2p recovery_action_drain_p2p"},
		{after: minute, facts: facts(driver("drain_and_reset")), want: "degraded drain_and_reset recovery_action_drain_and_reset"},
		{after: minute, facts: facts(driver("recover_imex_domain")), want: "degraded recover_imex_domain recovery_action_recover_imex_domain"},
		{after: minute, facts: facts(driver("other")), want: "degraded inspect recovery_action_other"},
		{after: minute, facts: facts(driver("other")), news: news(xid(79)), want: "failed reboot xid_79 recovery_action_other"},
		{after: hour, facts: facts(driver("other")), want: "failed reboot xid_79 recovery_action_other"},
		{after: minute, facts: facts(driver("none")), want: "healthy none"},
	}},
	{"a state of the fabric that is newer than this version", []step{
		{facts: facts(set(collector.FabricState, 0, "completed"), set(collector.FabricState, 1, "other")), want: "healthy none"},
		{after: hour, facts: facts(set(collector.FabricState, 0, "completed"), set(collector.FabricState, 1, "other")), want: "healthy none"},
	}},
	{"the recovery action is kept while the device does not answer", []step{
		{facts: facts(driver("reset")), want: "failed reset recovery_action_reset"},
		{after: minute, facts: facts(unseen), want: "failed reset recovery_action_reset no_answer"},
		{after: minute, facts: facts(unseen), news: news(event(collector.EventDriverLoaded, of(""))), want: "unknown none no_answer"},
		{after: minute, facts: facts(driver("none")), want: "healthy none"},
	}},
	{"only the kernel log reports the driver's action", []step{
		{news: news(xid(154, asks("reboot"))), want: "failed reboot recovery_action_reboot"},
		{after: hour, want: "failed reboot recovery_action_reboot"},
		{after: second, news: news(xid(154, asks("none"))), want: "healthy none"},
	}},
	{"the log reports the action before NVML", []step{
		{facts: facts(driver("none")), news: news(xid(95), xid(154, asks("reset"))), want: "failed reset recovery_action_reset xid_95"},
		{after: second, facts: facts(driver("none")), want: "failed reset recovery_action_reset xid_95"},
		{after: second, facts: facts(driver("reset")), want: "failed reset recovery_action_reset xid_95"},
	}},

	{"fallen off the bus", []step{
		{news: news(event(collector.EventBusLoss), xid(79)), want: "failed reboot xid_79"},
		{after: second, facts: facts(down(collector.ReasonLost)), want: "failed reboot xid_79 device_lost no_answer"},
		{after: hour, facts: facts(unseen), want: "failed reboot xid_79 no_answer"},
		{after: hour, facts: facts(down(collector.ReasonMissing)), want: "failed reboot xid_79 no_answer"},
		{after: minute, facts: facts(down(collector.ReasonMissing)), want: "failed reboot xid_79 device_missing no_answer"},
	}},
	{"a lost device answers again", []step{
		{news: news(xid(79)), want: "failed reboot xid_79"},
		{after: second, facts: facts(down(collector.ReasonLost)), want: "failed reboot xid_79 device_lost no_answer"},
		{after: minute, want: "healthy none"},
		{after: minute, news: news(xid(119)), want: "failed reset xid_119"},
		{after: minute, want: "failed reset xid_119"},
		{after: minute, facts: facts(down(collector.ReasonLost)), want: "failed reboot xid_119 device_lost no_answer"},
		{after: minute, facts: facts(stale(90 * second)), want: "failed reset xid_119"},
		{after: minute, want: "healthy none"},
	}},
	{"the driver requires a reset", []step{
		{facts: facts(down(collector.ReasonResetRequired)), want: "failed reset device_reset_required no_answer"},
		{after: minute, want: "healthy none"},
	}},
	{"a call that does not return", []step{
		{facts: facts(down(collector.ReasonStuck)), want: "unknown none no_answer"},
		{after: 59 * second, facts: facts(down(collector.ReasonStuck)), want: "unknown none no_answer"},
		{after: second, facts: facts(down(collector.ReasonStuck)), want: "failed reboot device_stuck no_answer"},
		{after: second, want: "healthy none"},
	}},
	{"other reasons of a device that does not answer", []step{
		{facts: facts(down(collector.ReasonError)), want: "unknown none no_answer"},
		{after: minute, facts: facts(down(collector.ReasonError)), want: "failed inspect device_unreadable no_answer"},
		{after: second, facts: facts(down(collector.ReasonUnavailable)), want: "unknown none no_answer"},
		{after: minute, facts: facts(down(collector.ReasonUnavailable)), want: "failed inspect device_unavailable no_answer"},
		{after: second, facts: facts(down("offline")), want: "unknown none no_answer"},
		{after: minute, facts: facts(down("offline")), want: "failed inspect device_down no_answer"},
	}},
	{"unavailable until it answers", []step{
		{news: news(event(collector.EventUnavailable)), want: "failed reset event_gpu_unavailable"},
		{after: 29 * second, want: "failed reset event_gpu_unavailable"},
		{after: second, want: "healthy none"},
	}},

	{"driver reload", []step{
		{news: news(xid(119), xid(32)), want: "failed reset xid_119 xid_32"},
		{after: minute, news: news(event(collector.EventDriverLoaded, of(""))), want: "degraded restart_app xid_32"},
		{after: second, news: news(xid(119, past(hour))), want: "degraded restart_app xid_32"},
		{after: second, news: news(xid(119)), want: "failed reset xid_119 xid_32"},
	}},
	{"faults from before the start", []step{
		{news: news(xid(119, past(hour)), xid(94, past(2*hour)), xid(32, past(59*minute)), xid(31, past(minute))), want: "failed reset xid_119 xid_32"},
		{after: minute, want: "failed reset xid_119"},
	}},
	{"a fault from before the start, and the driver recommends no action", []step{
		{facts: facts(driver("none")), news: news(xid(119, past(hour))), want: "degraded reset xid_119"},
		{after: second, facts: facts(driver("none")), news: news(xid(119)), want: "failed reset xid_119"},
		{after: minute, facts: facts(driver("none")), want: "failed reset xid_119"},
	}},
	{"faults from before the last load of the driver", []step{
		{news: news(xid(79, past(3*hour)), xid(154, past(3*hour), asks("reboot")), event(collector.EventDriverLoaded, of(""), past(2*hour)), xid(62, past(hour))), want: "failed reset xid_62"},
	}},

	{"teardown with its cause", []step{
		{news: news(xid(45, cause(31))), want: "healthy none"},
		{after: second, news: news(xid(45, cause(95))), want: "failed reset xid_95"},
		{after: second, news: news(xid(45, cause(45))), want: "failed reset xid_95"},
	}},
	{"the kernel log adds the cause", []step{
		{news: news(xid(45), xid(45, cause(119), again)), want: "failed reset xid_119"},
	}},
	{"two reports of one fault", []step{
		{news: news(xid(95), xid(95, again)), want: "failed reset xid_95"},
	}},
	{"the kernel log adds the sub-code: recovered", []step{
		{news: news(xid(145)), want: "failed reset xid_145_no_sub_code"},
		{after: second, news: news(xid(145, sub("RLW_REMAP:0x100"), again)), want: "healthy none"},
	}},
	{"the kernel log adds the sub-code: fatal", []step{
		{news: news(xid(145), xid(145, sub("RLW_REMAP:0x40"), again)), want: "failed reset xid_145_rlw_remap_0x40"},
	}},
	{"the sub-code comes first", []step{
		{news: news(xid(145, sub("RLW_REMAP:0x100")), xid(145, again)), want: "healthy none"},
	}},
	{"two faults of one code, one with a sub-code", []step{
		{news: news(xid(145)), want: "failed reset xid_145_no_sub_code"},
		{after: second, news: news(xid(145, sub("RLW_REMAP:0x40"))), want: "failed reset xid_145_no_sub_code xid_145_rlw_remap_0x40"},
	}},
	{"no sub-code, and the driver recommends no action", []step{
		{news: news(xid(149)), facts: facts(driver("none")), want: "failed reset xid_149_no_sub_code"},
		{after: 31 * second, facts: facts(driver("none")), want: "degraded reset xid_149_no_sub_code"},
		{after: hour, facts: facts(driver("none")), want: "healthy none"},
	}},
	{"no sub-code, and no recovery action of the driver", []step{
		{news: news(xid(149)), want: "failed reset xid_149_no_sub_code"},
		{after: 10 * hour, want: "failed reset xid_149_no_sub_code"},
	}},
	{"the Xids of a dead link to the CPU, to the slot, of a halted controller and of memory", []step{
		{news: news(xid(173)), want: "failed reboot xid_173"},
		{after: second, news: news(xid(167)), want: "failed reboot xid_173 xid_167"},
		{after: second, news: news(xid(169)), want: "failed reboot xid_173 xid_167 xid_169"},
		{after: second, news: news(xid(175)), want: "failed reboot xid_173 xid_167 xid_169 xid_175"},
		{after: 31 * second, facts: facts(driver("none")), want: "degraded reboot xid_173 xid_167 xid_169 xid_175"},
	}},
	{"an uncorrectable error without Xid 48", []step{
		{news: news(xid(171)), want: "degraded reset xid_171"},
		{after: 2 * second, news: news(xid(172)), want: "failed reset xid_171 xid_172"},
	}},
	{"a sub-code without an entry", []step{
		{news: news(xid(149, sub("NETIR_BER_EVENT:0x77"))), want: "degraded inspect xid_149"},
	}},
	{"an NVLink goes down", []step{
		{news: news(xid(149, sub("NETIR_LINK_DOWN:0x21"))), want: "degraded reset xid_149_netir_link_down_0x21"},
		{after: 6*hour - second, want: "degraded reset xid_149_netir_link_down_0x21"},
		{after: second, want: "healthy none"},
	}},
	{"fatal errors of RLW_RXPIPE", []step{
		{news: news(xid(145, sub("RLW_RXPIPE:0x1"))), want: "healthy none"},
		{after: second, news: news(xid(145, sub("RLW_RXPIPE:0x1:fatal"))), want: "failed reset xid_145_rlw_rxpipe_0x1_fatal"},
	}},

	{"memory is remapped at the next reset", []step{
		{facts: facts(set(collector.RowRemapPending, 0)), news: news(xid(63)), want: "degraded reset xid_63"},
		{after: second, facts: facts(set(collector.RowRemapPending, 1)), want: "degraded reset xid_63 row_remap_pending"},
		{after: hour, facts: facts(set(collector.RowRemapPending, 1)), want: "degraded reset xid_63 row_remap_pending"},
		{after: minute, facts: facts(set(collector.RowRemapPending, 0)), want: "healthy none"},
	}},
	{"a remap that is not pending", []step{
		{facts: facts(set(collector.RowRemapPending, 0)), news: news(xid(63)), want: "degraded reset xid_63"},
		{after: 30 * second, facts: facts(set(collector.RowRemapPending, 0)), want: "healthy none"},
	}},
	{"memory cannot be remapped", []step{
		{facts: facts(set(collector.RowRemapFailed, 1)), news: news(xid(64)), want: "failed replace xid_64 row_remap_failed"},
	}},
	{"contained error", []step{
		{news: news(xid(48), xid(171)), want: "degraded reset xid_171 xid_48"},
		{after: second, news: news(xid(94)), want: "degraded restart_app xid_94"},
		{after: second, news: news(event(collector.EventECCDoubleBit)), want: "degraded restart_app xid_94"},
		{after: minute, news: news(xid(48)), want: "degraded reset xid_94 xid_48"},
		{after: 2 * second, want: "failed reset xid_48 xid_94"},
	}},
	{"a contained error counts for an hour", []step{
		{news: news(xid(94)), want: "degraded restart_app xid_94"},
		{after: hour, want: "healthy none"},
	}},
	{"uncorrected errors count until the driver clears them", []step{
		{facts: facts(set(collector.ECCErrors, 0, "uncorrected", "dram"), set(collector.ECCErrors, 7, "corrected", "dram")), want: "healthy none"},
		{after: second, facts: facts(set(collector.ECCErrors, 2, "uncorrected", "dram")), news: news(xid(140)), want: "failed reset xid_140 ecc_uncorrected"},
		{after: hour, facts: facts(set(collector.ECCErrors, 0, "uncorrected", "dram")), want: "healthy none"},
	}},
	{"memory events of NVML are reported as Xids", []step{
		{news: news(event(collector.EventECCDoubleBit), xid(48)), want: "degraded reset xid_48"},
		{after: 2 * second, news: news(event(collector.EventRetirement), event(collector.EventRetirementError)), want: "failed reset xid_48 xid_64 xid_63"},
	}},
	{"SRAM past its threshold", []step{{facts: facts(set(collector.SRAMThreshold, 1)), want: "degraded replace sram_threshold"}}},
	{"no spare rows", []step{
		{facts: facts(set(collector.RowRemapBanks, 9, "max"), set(collector.RowRemapBanks, 0, "none")), want: "healthy none"},
		{after: second, facts: facts(set(collector.RowRemapBanks, 1, "none")), want: "degraded inspect row_remap_exhausted"},
	}},
	{"pending repairs", []step{
		{facts: facts(set(collector.RepairPending, 1, "channel"), set(collector.RetiredPagesPending, 1)), news: news(xid(160)), want: "degraded reset xid_160 repair_pending retired_pages_pending"},
		{after: minute, facts: facts(set(collector.RepairPending, 1, "channel"), set(collector.RetiredPagesPending, 0)), want: "degraded reset repair_pending"},
	}},
	{"power smoothing is lost and restored", []step{
		{news: news(xid(163)), want: "degraded reset xid_163"},
		{after: hour, news: news(xid(162)), want: "healthy none"},
	}},

	{"NVLinks that were never up", []step{
		{facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1")), want: "healthy none"},
		{after: hour, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1")), want: "healthy none"},
	}},
	{"links go down one after the other", []step{
		{facts: facts(set(collector.NVLinkUp, 1, "0"), set(collector.NVLinkUp, 1, "1")), want: "healthy none"},
		{after: second, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 1, "1")), want: "healthy none"},
		{after: 30 * second, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 1, "1")), want: "degraded inspect nvlink_down"},
		{after: second, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1")), want: "degraded inspect nvlink_down"},
		{after: second, facts: facts(set(collector.NVLinkUp, 1, "0"), set(collector.NVLinkUp, 1, "1")), want: "healthy none"},
		{after: second, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1")), want: "healthy none"},
		{after: 29 * second, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1")), want: "healthy none"},
		{after: second, facts: facts(set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1")), want: "degraded inspect nvlink_down"},
	}},
	{"all NVLinks of a fabric are down from the start", []step{
		{facts: dark(set(collector.FabricState, 1, "completed")), want: "healthy none"},
		{after: 30 * second, facts: dark(set(collector.FabricState, 1, "completed")), want: "failed reset fabric_links_down"},
		{after: second, facts: dark(set(collector.FabricState, 0, "completed")), want: "healthy none"},
		{after: hour, facts: facts(set(collector.FabricState, 1, "completed"), set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 1, "1")), want: "healthy none"},
	}},
	{"the summary of the fabric", []step{
		{facts: facts(set(collector.FabricHealth, 1, "unhealthy"), set(collector.FabricHealth, 0, "healthy")), want: "healthy none"},
		{after: 30 * second, facts: facts(set(collector.FabricHealth, 1, "unhealthy"), set(collector.FabricHealth, 0, "healthy")), want: "failed inspect fabric_unhealthy"},
		{after: second, facts: facts(set(collector.FabricHealth, 1, "limited_capacity")), want: "healthy none"},
		{after: 30 * second, facts: facts(set(collector.FabricHealth, 1, "limited_capacity")), want: "degraded inspect fabric_limited"},
		{after: second, facts: facts(set(collector.FabricHealth, 1, "other")), want: "healthy none"},
	}},
	{"the registration with the fabric fails", []step{
		{facts: facts(set(collector.FabricStatus, 0, "success"), set(collector.FabricStatus, 1, "not_found")), want: "healthy none"},
		{after: 30 * second, facts: facts(set(collector.FabricStatus, 0, "success"), set(collector.FabricStatus, 1, "not_found")), want: "failed inspect fabric_registration_failed"},
		{after: second, facts: facts(set(collector.FabricStatus, 1, "success"), set(collector.FabricPartition, 0)), want: "healthy none"},
		{after: 10 * minute, facts: facts(set(collector.FabricStatus, 1, "success"), set(collector.FabricPartition, 0)), want: "degraded inspect fabric_no_partition"},
	}},
	{"the fabric", []step{
		{facts: facts(set(collector.FabricState, 0, "completed"), set(collector.FabricState, 1, "in_progress")), want: "healthy none"},
		{after: 10 * minute, facts: facts(set(collector.FabricState, 0, "completed"), set(collector.FabricState, 1, "in_progress")), want: "failed inspect fabric_not_ready"},
		{after: second, facts: facts(set(collector.FabricFault, 1, "route_unhealthy"), set(collector.FabricFault, 0, "route_recovery")), want: "failed inspect fabric_route_unhealthy"},
		{after: second, facts: facts(set(collector.FabricFault, 1, "degraded_bandwidth")), want: "degraded inspect fabric_fault"},
		{after: second, facts: facts(set(collector.FabricFault, 0, "degraded_bandwidth")), want: "healthy none"},
	}},
	{"heat", []step{
		{facts: facts(set(collector.TemperatureMargin, 0, "slowdown"), set(collector.TemperatureMargin, 0.5, "shutdown"), set(collector.ThrottleActive, 1, "hw_thermal")), want: "healthy none"},
		{after: 10 * second, facts: facts(set(collector.TemperatureMargin, 0.5, "shutdown"), set(collector.ThrottleActive, 1, "hw_thermal")), want: "degraded inspect shutdown_near"},
		{after: 5 * minute, facts: facts(set(collector.TemperatureMargin, 1, "shutdown"), set(collector.ThrottleActive, 1, "hw_thermal")), want: "degraded inspect throttled_by_heat"},
		{after: second, facts: facts(set(collector.ThrottleActive, 1, "sw_power_cap")), want: "healthy none"},
		{after: second, facts: facts(set(collector.ThrottleActive, 1, "hw_power_brake")), want: "healthy none"},
		{after: 5 * minute, facts: facts(set(collector.ThrottleActive, 1, "hw_power_brake")), want: "degraded inspect throttled_by_power"},
	}},
	{"sensors with different limits", []step{
		{facts: facts(sensors(100)...), want: "healthy none"},
		{after: minute, facts: facts(sensors(100)...), want: "healthy none"},
		{after: minute, facts: facts(sensors(101)...), want: "healthy none"},
		{after: 10 * second, facts: facts(sensors(101)...), want: "degraded inspect temperature_shutdown"},
	}},
	{"a link with fewer lanes", []step{
		{facts: facts(set(collector.PCIeWidth, 8), set(collector.PCIeWidthMax, 16)), want: "healthy none"},
		{after: 5 * minute, facts: facts(set(collector.PCIeWidth, 8), set(collector.PCIeWidthMax, 16)), want: "degraded inspect pcie_link_narrow"},
		{after: second, facts: facts(set(collector.PCIeWidth, 16), set(collector.PCIeWidthMax, 16)), want: "healthy none"},
	}},
	{"a narrow slot is not a fault", []step{
		{facts: facts(lanes(8, 16, 8)...), want: "healthy none"},
		{after: hour, facts: facts(lanes(8, 16, 8)...), want: "healthy none"},
		{after: second, facts: facts(lanes(4, 16, 8)...), want: "healthy none"},
		{after: 5 * minute, facts: facts(lanes(4, 16, 8)...), want: "degraded inspect bus_link_narrow"},
	}},
	{"errors on the PCIe link", []step{
		{facts: facts(aer(3, 0)...), want: "healthy none"},
		{after: second, facts: facts(aer(3, 0)...), want: "healthy none"},
		{after: second, facts: facts(aer(4, 0)...), want: "degraded inspect pcie_nonfatal"},
		{after: second, facts: facts(aer(4, 1)...), want: "degraded reset pcie_nonfatal pcie_fatal"},
		{after: hour - second, facts: facts(aer(4, 1)...), want: "degraded reset pcie_fatal"},
		{after: second, facts: facts(aer(4, 1)...), want: "healthy none"},
		{after: second, facts: facts(aer(0, 0)...), want: "healthy none"},
		{after: second, facts: facts(aer(1, 0)...), want: "degraded inspect pcie_nonfatal"},
		{after: 2 * hour, want: "healthy none"},
		{after: second, facts: facts(aer(2, 0)...), want: "degraded inspect pcie_nonfatal"},
	}},
	{"PCIe errors of the kernel log", []step{
		{news: news(event(collector.EventAER, sub("corrected/RxErr"))), want: "healthy none"},
		{after: second, news: news(event(collector.EventAER, sub("nonfatal/CmpltTO"))), want: "degraded inspect event_aer_nonfatal"},
		{after: second, news: news(event(collector.EventAER, sub("fatal/DLP"))), want: "degraded reset event_aer_nonfatal event_aer_fatal"},
		{after: hour, want: "healthy none"},
	}},

	{"on the bus and not in the driver", []step{
		{facts: facts(unseen, set(collector.DeviceSeen, 0, "nvidia"), set(collector.DeviceSeen, 1, "pcie")), want: "unknown none no_answer"},
		{after: minute, facts: facts(unseen, set(collector.DeviceSeen, 0, "nvidia"), set(collector.DeviceSeen, 1, "pcie")), want: "failed inspect not_in_driver no_answer"},
	}},
	{"in the driver and not on the bus", []step{
		{facts: facts(set(collector.DeviceSeen, 1, "nvidia"), set(collector.DeviceSeen, 0, "pcie")), want: "healthy none"},
		{after: 30 * second, facts: facts(set(collector.DeviceSeen, 1, "nvidia"), set(collector.DeviceSeen, 0, "pcie")), want: "failed reboot not_on_bus"},
	}},
	{"a PCI function does not respond", []step{
		{facts: facts(family("accel_pcie_function_responding", 0, gpuAt)), want: "healthy none"},
		{after: 10 * second, facts: facts(family("accel_pcie_function_responding", 0, gpuAt)), want: "failed reboot pci_not_responding"},
	}},
	{"the device file is gone", []step{
		{facts: facts(family("accel_device_file_usable", 0, "nvidia0", "missing"), family("accel_device_file_usable", 1, "nvidiactl", "")), want: "healthy none"},
		{after: minute, facts: facts(family("accel_device_file_usable", 0, "nvidia0", "missing")), want: "degraded inspect device_file_unusable"},
	}},
	{"seen on the bus only", []step{
		{facts: facts(func(d *collector.Device) { d.Witness = true }), want: "unknown none no_answer"},
	}},

	// Of AMD's driver.
	{"what the driver handles by itself, and what programs do", []step{
		{news: news(
			event(collector.EventPageFault), event(collector.EventHangRecovered), event(collector.EventECCCorrected), event(collector.EventECCDeferred),
			event(collector.EventThrottled), event(collector.EventResetBegin), event(collector.EventReset), event(collector.EventPCIeRecovery),
		), want: "healthy none"},
	}},
	{"the driver resets the GPU after a hang", []step{
		{news: news(hang()), want: "degraded reset event_hang"},
		{after: 20 * second, news: news(event(collector.EventResetBegin)), want: "degraded reset event_hang"},
		{after: 20 * second, news: news(event(collector.EventReset)), want: "healthy none"},
	}},
	{"a reset that does not come", []step{
		{news: news(hang()), want: "degraded reset event_hang"},
		{after: 2*minute - second, news: news(hang()), want: "degraded reset event_hang"},
		{after: second, want: "failed reset event_hang"},
		{after: hour, want: "failed reset event_hang"},
		{after: second, news: news(event(collector.EventReset)), want: "healthy none"},
	}},
	{"a reset that fails", []step{
		{news: news(hang(), event(collector.EventResetBegin), event(collector.EventResetFailed)), want: "failed reboot event_reset_failed event_hang"},
		{after: hour, news: news(loaded), want: "healthy none"},
	}},
	{"a reset of the queue that hung is none of the GPU", []step{
		{news: news(hang(), event(collector.EventECCUncorrected), event(collector.EventQueueReset)), want: "failed reset event_ecc_uncorrected"},
		{after: second, news: news(event(collector.EventReset)), want: "healthy none"},
	}},
	{"a hang after the reset", []step{
		{news: news(hang(earlier(5*second)), event(collector.EventReset, earlier(4*second)), hang()), want: "degraded reset event_hang"},
	}},
	{"damaged data", []step{
		{news: news(event(collector.EventECCUncorrected), event(collector.EventPoison)), want: "failed reset event_ecc_uncorrected event_poison"},
		{after: second, news: news(event(collector.EventPoisonFatal)), want: "failed reset event_ecc_uncorrected event_poison_fatal event_poison"},
		{after: second, news: news(event(collector.EventReset)), want: "degraded restart_app event_poison"},
		{after: hour, want: "healthy none"},
	}},
	{"a reset does not bring memory back, and a load counts it again", []step{
		{news: news(event(collector.EventRetirementLimit, sub("near"))), want: "degraded inspect event_dram_retirement_limit_near"},
		{after: second, news: news(event(collector.EventRetirementLimit)), want: "degraded replace event_dram_retirement_limit_near event_dram_retirement_limit"},
		{after: second, news: news(event(collector.EventReset)), want: "degraded replace event_dram_retirement_limit_near event_dram_retirement_limit"},
		{after: second, news: news(loaded), want: "healthy none"},
	}},
	{"a load of another GPU's driver ends nothing here", []step{
		{news: news(event(collector.EventBootError)), want: "failed reboot event_boot_error"},
		{after: second, news: news(event(collector.EventDriverLoaded, of("GPU-2"))), want: "failed reboot event_boot_error"},
		{after: second, news: news(loaded), want: "healthy none"},
	}},
	{"the log from before the start", []step{
		{news: news(hang(past(hour)), event(collector.EventResetFailed, past(hour)), event(collector.EventDriverLoaded, past(minute))), want: "healthy none"},
		{after: second, news: news(hang(past(2*minute)), event(collector.EventBootError, past(2*minute))), want: "healthy none"},
		{after: second, news: news(hang(past(0))), want: "degraded reset event_hang"},
	}},
	{"a hang that nobody ended before the start", []step{
		{news: news(hang(past(hour))), want: "failed reset event_hang"},
	}},
	{"the firmware does not answer for a moment", []step{
		{news: news(event(collector.EventFirmwareStuck)), want: "degraded reset event_firmware_stuck"},
		{after: 5 * minute, want: "healthy none"},
	}},
}

// dark sets two NVLinks that are down.
func dark(f ...fact) []fact {
	return append(f, set(collector.NVLinkUp, 0, "0"), set(collector.NVLinkUp, 0, "1"))
}

// TestPeers: the NVLinks of the only GPU of a virtual machine lead nowhere.
func TestPeers(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	for _, now := range []time.Time{start, start.Add(hour)} {
		s := snapshot(now, nil, gpu(now, dark(set(collector.FabricState, 1, "completed"))...))
		same(t, verdicts(t, j, s), map[string]string{gpuID: "healthy none"})
	}
}

// sensors are three sensors; the sensor board has no limit.
func sensors(gpu float64) []fact {
	return []fact{
		set(collector.TemperatureCelsius, 120, "board"), set(collector.TemperatureCelsius, 105, "memory"), set(collector.TemperatureCelsius, gpu, "gpu"),
		set(collector.TemperatureLimit, 110, "memory", "shutdown"), set(collector.TemperatureLimit, 80, "gpu", "slowdown"), set(collector.TemperatureLimit, 100, "gpu", "shutdown"),
	}
}

// eccs sets uncorrected errors by location, and 50 corrected errors.
func eccs(uncorrected ...float64) fact {
	return func(d *collector.Device) {
		for i, n := range uncorrected {
			d.Set(collector.ECCErrors, n, "uncorrected", []string{"dram", "sram"}[i])
		}
		d.Set(collector.ECCErrors, 50, "corrected", "dram")
	}
}

// lanes sets the widths of the PCIe link between a device and a port, and of a
// narrower link above it.
func lanes(now, device, port float64) []fact {
	const portAt = "0000:1a:00.0"
	const width, most = "accel_pcie_bus_link_width_lanes", "accel_pcie_bus_link_width_max_lanes"
	return []fact{
		family(width, now, gpuAt, "0", "device"), family(width, now, portAt, "0", "port"),
		family(most, device, gpuAt, "0", "device"), family(most, port, portAt, "0", "port"),
		family(width, 4, portAt, "1", "device"), family(most, 4, portAt, "1", "device"),
	}
}

// aer sets the error reports of a link.
func aer(nonfatal, fatal float64) []fact {
	const reports = "accel_pcie_aer_reports_total"
	return []fact{
		family(reports, 100, gpuAt, "0", "device", "correctable"),
		family(reports, nonfatal, gpuAt, "0", "device", "nonfatal"),
		family(reports, fatal, gpuAt, "0", "device", "fatal"),
	}
}

// TestHistories judges each history with a new Judge.
func TestHistories(t *testing.T) {
	for _, s := range cases {
		t.Run(s.name, func(t *testing.T) { play(t, s) })
	}
}
