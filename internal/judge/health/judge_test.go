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
	{"no source has sampled", []step{
		{facts: facts(unseen), want: "unknown none no_answer"},
		{after: second, want: "healthy none"},
		{after: second, facts: facts(unseen), want: "unknown none no_answer"},
	}},

	{"unknown code", []step{
		{news: news(xid(777)), want: "degraded inspect xid_unknown"},
		{after: hour - second, want: "degraded inspect xid_unknown"},
		{after: second, want: "healthy none"},
	}},

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
	{"the end of pending repairs is a reset", []step{
		{facts: facts(set(collector.RowRemapPending, 0), set(collector.RepairPending, 1, "tpc")), news: news(xid(119)), want: "failed reset xid_119 repair_pending"},
		{after: minute, facts: facts(set(collector.RowRemapPending, 0), set(collector.RepairPending, 0, "tpc")), want: "healthy none"},
	}},
	{"a reset does not end a later fault", []step{
		{facts: facts(set(collector.EnergyJoules, 100)), want: "healthy none"},
		{after: minute, news: news(xid(119, earlier(5*second))), facts: facts(set(collector.EnergyJoules, 10)), want: "failed reset xid_119"},
		{after: minute, news: news(xid(119, earlier(30*second)), xid(120, earlier(5*second))), facts: facts(set(collector.EnergyJoules, 5)), want: "failed reset xid_120"},
	}},
	{"a failed read is no reset", []step{
		{facts: facts(set(collector.RowRemapPending, 1), set(collector.RetiredPagesPending, 0)), news: news(xid(95)), want: "failed reset xid_95 row_remap_pending"},
		{after: minute, facts: facts(set(collector.RetiredPagesPending, 0)), want: "failed reset xid_95"},
		{after: second, facts: facts(set(collector.RowRemapPending, 1), set(collector.RetiredPagesPending, 0)), want: "failed reset xid_95 row_remap_pending"},
		{after: second, facts: facts(set(collector.RowRemapPending, 0), set(collector.RetiredPagesPending, 0)), want: "healthy none"},
	}},
	{"the recovery action is kept while the device does not answer", []step{
		{facts: facts(driver("reset")), want: "failed reset recovery_action_reset"},
		{after: minute, facts: facts(unseen), want: "failed reset recovery_action_reset no_answer"},
		{after: minute, facts: facts(unseen), news: news(event(collector.EventDriverLoaded, of(""))), want: "failed reset recovery_action_reset no_answer"},
		{after: minute, facts: facts(driver("none")), want: "healthy none"},
	}},
	{"only the kernel log reports the driver's action", []step{
		{news: news(xid(154, asks("reboot"))), want: "failed reboot recovery_action_reboot"},
		{after: hour, want: "failed reboot recovery_action_reboot"},
		{after: second, news: news(xid(154, asks("none"))), want: "healthy none"},
	}},

	{"a driver that cannot start the GPU", []step{
		{facts: facts(unseen), news: news(event(collector.EventProbeFailed, sub("unsupported"))), want: "failed update_software event_probe_failed_unsupported no_answer"},
		{after: hour, facts: facts(unseen), want: "failed update_software event_probe_failed_unsupported no_answer"},
		{after: minute, want: "healthy none"},
	}},
	{"other reasons of a device that does not answer", []step{
		{facts: facts(down(collector.ReasonError)), want: "unknown none no_answer"},
		{after: minute, facts: facts(down(collector.ReasonError)), want: "failed inspect device_unreadable no_answer"},
		{after: second, facts: facts(down(collector.ReasonUnavailable)), want: "unknown none no_answer"},
		{after: minute, facts: facts(down(collector.ReasonUnavailable)), want: "failed inspect device_unavailable no_answer"},
		{after: second, facts: facts(down("offline")), want: "unknown none no_answer"},
		{after: minute, facts: facts(down("offline")), want: "failed inspect device_down no_answer"},
	}},

	{"a device that was taken from its driver", []step{
		{facts: facts(down(collector.ReasonUnbound)), want: "degraded inspect device_unbound"},
		{after: hour, news: news(xid(79)), facts: facts(down(collector.ReasonUnbound)), want: "failed reboot xid_79 device_unbound"},
	}},

	{"a load of the driver that does not find the device", []step{
		{facts: facts(unseen), news: news(xid(79, past(2*minute)), event(collector.EventDriverLoaded, of(""), past(minute))), want: "failed reboot xid_79 no_answer"},
		{after: hour, facts: facts(unseen), want: "failed reboot xid_79 no_answer"},
		{after: second, want: "healthy none"},
	}},
	{"faults from before the start", []step{
		{news: news(xid(119, past(hour)), xid(94, past(2*hour)), xid(32, past(59*minute)), xid(31, past(minute))), want: "failed reset xid_119 xid_32"},
		{after: minute, want: "failed reset xid_119"},
	}},
	{"faults from before the last load of the driver", []step{
		{news: news(xid(79, past(3*hour)), xid(154, past(3*hour), asks("reboot")), event(collector.EventDriverLoaded, of(""), past(2*hour)), xid(62, past(hour))), want: "failed reset xid_62"},
	}},

	{"teardown with its cause", []step{
		{news: news(xid(45, cause(31))), want: "healthy none"},
		{after: second, news: news(xid(45, cause(95))), want: "failed reset xid_95"},
		{after: second, news: news(xid(45, cause(45))), want: "failed reset xid_95"},
	}},
	{"two reports of one fault", []step{
		{news: news(xid(95), xid(95, again)), want: "failed reset xid_95"},
	}},
	{"the kernel log adds the sub-code: recovered", []step{
		{news: news(xid(145)), want: "failed reset xid_145_no_sub_code"},
		{after: second, news: news(xid(145, sub("RLW_REMAP:0x100"), again)), want: "healthy none"},
	}},
	{"no sub-code, and the driver recommends no action", []step{
		{news: news(xid(149)), facts: facts(driver("none")), want: "failed reset xid_149_no_sub_code"},
		{after: 31 * second, facts: facts(driver("none")), want: "degraded reset xid_149_no_sub_code"},
		{after: hour, facts: facts(driver("none")), want: "healthy none"},
	}},

	{"uncorrected errors count until the driver clears them", []step{
		{facts: facts(set(collector.ECCErrors, 0, "uncorrected", "dram"), set(collector.ECCErrors, 7, "corrected", "dram")), want: "healthy none"},
		{after: second, facts: facts(set(collector.ECCErrors, 2, "uncorrected", "dram")), news: news(xid(140)), want: "failed reset xid_140 ecc_uncorrected"},
		{after: hour, facts: facts(set(collector.ECCErrors, 0, "uncorrected", "dram")), want: "healthy none"},
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

	// Of AMD's driver.
	{"a reset of the queue that hung is none of the GPU", []step{
		{news: news(hang(), event(collector.EventECCUncorrected), event(collector.EventQueueReset)), want: "failed reset event_ecc_uncorrected"},
		{after: second, news: news(event(collector.EventReset)), want: "healthy none"},
	}},
	{"the driver ends the work that hung", []step{
		{news: news(hang()), want: "degraded reset event_hang"},
		{after: second, news: news(event(collector.EventHangRecovered)), want: "healthy none"},
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

// eccs sets uncorrected errors by location, and 50 corrected errors.
func eccs(uncorrected ...float64) fact {
	return func(d *collector.Device) {
		for i, n := range uncorrected {
			d.Set(collector.ECCErrors, n, "uncorrected", []string{"dram", "sram"}[i])
		}
		d.Set(collector.ECCErrors, 50, "corrected", "dram")
	}
}

// TestHistories judges each history with a new Judge.
func TestHistories(t *testing.T) {
	for _, s := range cases {
		t.Run(s.name, func(t *testing.T) { play(t, s) })
	}
}
