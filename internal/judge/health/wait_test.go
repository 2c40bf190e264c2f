package health_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// logged is the report of the Xid in the kernel log, as the second one.
func logged(code uint64, s string) collector.Event { return xid(code, again, sub(s)) }

// TestAwaited checks that an Xid whose sub-code the kernel log reports is judged
// by the sub-code alone, and by its number if the log does not report it.
func TestAwaited(t *testing.T) {
	type look struct {
		after time.Duration
		deaf  bool // the kernel log is not read
		news  []collector.Event
		want  string
		again time.Duration // when it is to be looked at again, 0 for never
	}
	const moment = 300 * time.Millisecond
	for name, looks := range map[string][]look{
		"the log reports it as fatal": {
			{news: []collector.Event{xid(150)}, want: "healthy none", again: time.Second},
			{after: moment, news: []collector.Event{logged(150, "MSE_WATCHDOG")}, want: "failed reset xid_150_mse_watchdog"},
			{after: time.Minute, want: "failed reset xid_150_mse_watchdog"},
		},
		"in one Snapshot": {
			{news: []collector.Event{xid(150), logged(150, "MSE_WATCHDOG")}, want: "failed reset xid_150_mse_watchdog"},
		},
		"the log was first": {
			{news: []collector.Event{xid(150, sub("MSE_WATCHDOG"), func(e *collector.Event) { e.Source = "kernellog" })}, want: "failed reset xid_150_mse_watchdog"},
			{after: moment, news: []collector.Event{xid(150, func(e *collector.Event) { e.Witnesses = []string{"kernellog", "nvidia"} })}, want: "failed reset xid_150_mse_watchdog"},
		},
		"the log reports it as harmless": {
			{news: []collector.Event{xid(145)}, want: "healthy none", again: time.Second},
			{after: moment, news: []collector.Event{logged(145, "RLW_REMAP:0x100")}, want: "healthy none"},
			{after: time.Minute, want: "healthy none"},
		},
		"the log has its number only": {
			{news: []collector.Event{xid(150)}, want: "healthy none", again: time.Second},
			{after: moment, news: []collector.Event{xid(150, again)}, want: "degraded inspect xid_150"},
		},
		"the log does not report it": {
			{news: []collector.Event{xid(150)}, want: "healthy none", again: time.Second},
			{after: moment, want: "healthy none", again: time.Second - moment},
			{after: time.Second - moment, want: "degraded inspect xid_150"},
		},
		"the log reports it late": {
			{news: []collector.Event{xid(150)}, want: "healthy none", again: time.Second},
			{after: time.Second, want: "degraded inspect xid_150"},
			{after: time.Second, news: []collector.Event{logged(150, "MSE_WATCHDOG")}, want: "failed reset xid_150_mse_watchdog"},
		},
		"the log is not read": {
			{deaf: true, news: []collector.Event{xid(150)}, want: "degraded inspect xid_150"},
		},
		"the log goes": {
			{news: []collector.Event{xid(150)}, want: "healthy none", again: time.Second},
			{after: moment, deaf: true, want: "degraded inspect xid_150"},
		},
		"a code without sub-codes": {
			{news: []collector.Event{xid(79)}, want: "failed reboot xid_79"},
		},
		"two, of which the log reports one": {
			{news: []collector.Event{xid(150), xid(150)}, want: "healthy none", again: time.Second},
			{after: moment, news: []collector.Event{logged(150, "MSE_WATCHDOG")}, want: "failed reset xid_150_mse_watchdog", again: time.Second - moment},
			{after: time.Second, want: "failed reset xid_150_mse_watchdog xid_150"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := health.New(health.Builtin(), health.Options{})
			now := start
			for i, l := range looks {
				now = now.Add(l.after)
				s := snapshot(now, l.news, gpu(now))
				s.Sources = []collector.Status{{Source: "nvidia", Up: true}, {Source: "kernellog", Up: !l.deaf}}
				j.Judge(s)
				if got := verdict(&s.Devices[0]); got != l.want {
					t.Errorf("look %d: got %s, want %s", i, got, l.want)
				}
				var again time.Duration
				if !s.Again.IsZero() {
					again = s.Again.Sub(now)
				}
				if again != l.again {
					t.Errorf("look %d: again after %v, want %v", i, again, l.again)
				}
			}
		})
	}
}

// TestAwaitedOfStranger: an Xid of a GPU that no Source has found yet waits,
// and is judged once it is found.
func TestAwaitedOfStranger(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	s := snapshot(start, []collector.Event{xid(150, of(gpuAt))})
	j.Judge(s)
	now := start.Add(time.Minute)
	s = snapshot(now, nil, gpu(now))
	j.Judge(s)
	if got := verdict(&s.Devices[0]); got != "degraded inspect xid_150" {
		t.Errorf("got %s", got)
	}
}

// TestAwaitedInTime: the Sampler judges an event that the log does not report when
// the wait is over, also where no Source has a round for long.
func TestAwaitedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := collector.NewSampler(collector.Settings{Interval: time.Hour, ForgetAfter: time.Hour})
		nvml, log := &source{name: "nvidia"}, &source{name: "kernellog"}
		nvml.yield(gpu(time.Now()))
		log.yield()
		s.Add(nvml, collector.Cover{Class: collector.GPU, Vendor: "nvidia"})
		s.Add(log)
		s.AddJudge(health.New(health.Builtin(), health.Options{}))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		defer func() { stop(); <-done }()

		time.Sleep(time.Minute)
		s.Emit(xid(150))
		for _, look := range []struct {
			after time.Duration
			want  string
		}{{0, "healthy none"}, {900 * time.Millisecond, "healthy none"}, {200 * time.Millisecond, "degraded inspect xid_150"}} {
			time.Sleep(look.after)
			synctest.Wait()
			if d := s.Latest().Devices; len(d) != 1 || verdict(&d[0]) != look.want {
				t.Errorf("got %s, want %s", verdict(&d[0]), look.want)
			}
		}
	})
}
