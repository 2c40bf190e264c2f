package health_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// logged is the second report of an Xid, by the kernel log.
func logged(code uint64, s string) collector.Event { return xid(code, again, sub(s)) }

// TestAwaited: an Xid whose sub-code the kernel log reports is judged by its sub-code,
// or as the gravest one if the log does not report it in time.
func TestAwaited(t *testing.T) {
	const moment = 300 * time.Millisecond
	for name, steps := range map[string][]step{
		"the log reports it first": {
			{log: true, news: news(xid(150, sub("MSE_WATCHDOG"), func(e *collector.Event) { e.Source = "kernellog" })), want: "failed reset xid_150_mse_watchdog"},
			{after: moment, log: true, news: news(xid(150, func(e *collector.Event) { e.Witnesses = []string{"kernellog", "nvidia"} })), want: "failed reset xid_150_mse_watchdog"},
		},
		"the log reports the number only": {
			{log: true, news: news(xid(150)), want: "healthy none", again: time.Second},
			{after: moment, log: true, news: news(xid(150, again)), want: "degraded inspect xid_150"},
		},
		"the log does not report it": {
			{log: true, news: news(xid(150)), want: "healthy none", again: time.Second},
			{after: moment, log: true, want: "healthy none", again: time.Second - moment},
			{after: time.Second - moment, log: true, want: "failed reset xid_150_no_sub_code"},
		},
		"the log reports it late": {
			{log: true, news: news(xid(150)), want: "healthy none", again: time.Second},
			{after: time.Second, log: true, want: "failed reset xid_150_no_sub_code"},
			{after: time.Second, log: true, news: news(logged(150, "MSE_WATCHDOG")), want: "failed reset xid_150_mse_watchdog"},
		},
		"the log is no longer read": {
			{log: true, news: news(xid(150)), want: "healthy none", again: time.Second},
			{after: moment, want: "failed reset xid_150_no_sub_code"},
		},
		"two Xids, one reported by the log": {
			{log: true, news: news(xid(150), xid(150)), want: "healthy none", again: time.Second},
			{after: moment, log: true, news: news(logged(150, "MSE_WATCHDOG")), want: "failed reset xid_150_mse_watchdog", again: time.Second - moment},
			{after: time.Second, log: true, want: "failed reset xid_150_no_sub_code xid_150_mse_watchdog"},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, history{name, steps}) })
	}
}

// TestAwaitedInTime: at the end of the wait, the Sampler judges an event that the log
// has not reported, also without a round of a Source.
func TestAwaitedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nvml, log := &source{name: "nvidia"}, &source{name: "kernellog"}
		nvml.set(gpu(time.Now()))
		log.set()
		s := sample(t, time.Hour, nvml, log)
		time.Sleep(time.Minute)
		s.Emit(xid(150))
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "healthy none"}, {900 * time.Millisecond, "healthy none"}, {200 * time.Millisecond, "failed reset xid_150_no_sub_code"}} {
			time.Sleep(step.after)
			synctest.Wait()
			if d := s.Latest().Devices; len(d) != 1 || verdict(&d[0]) != step.want {
				t.Errorf("got %s, want %s", verdict(&d[0]), step.want)
			}
		}
	})
}
