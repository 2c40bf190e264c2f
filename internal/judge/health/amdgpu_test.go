package health_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

func hang(more ...func(*collector.Event)) collector.Event {
	return event(collector.EventHang, more...)
}

// loaded is a load of the driver for the device of the test cases.
var loaded = event(collector.EventDriverLoaded)

// TestOtherDriver: a load of NVIDIA's driver ends no fault of another vendor's device.
func TestOtherDriver(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	amd := gpu(start)
	amd.Vendor = "amd"
	ofNVIDIA := event(collector.EventDriverLoaded, of(""))
	for i, news := range [][]collector.Event{news(event(collector.EventBootError)), news(ofNVIDIA), nil} {
		same(t, verdicts(t, j, snapshot(start.Add(time.Duration(i)*time.Second), news, amd)), map[string]string{gpuID: "failed reboot event_boot_error"})
	}
}

// TestAMDHistories judges events of AMD's driver.
func TestAMDHistories(t *testing.T) {
	for _, s := range []history{
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
	} {
		t.Run(s.name, func(t *testing.T) { play(t, s) })
	}
}
