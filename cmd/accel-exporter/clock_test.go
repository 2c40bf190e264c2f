package main

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/judge/attention"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// clockSource is an idle GPU with traffic below what counts as use.
type clockSource struct{ now func() time.Time }

func (clockSource) Name() string { return "nvidia" }
func (clockSource) Close() error { return nil }

func (s clockSource) Sample(context.Context) (collector.Round, error) {
	d := collector.Device{ID: "GPU-a", Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{"GPU-a"}, Sampled: s.now()}
	d.Set(collector.UtilizationRatio, 0, "compute")
	d.Set(collector.PCIeReceiveRate, 1000)
	return collector.Round{Devices: []collector.Device{d}}, nil
}

// TestClockIsSet: five hours that the clock is set by, in either direction, are no
// time: no pod holds a GPU, idles or pays for longer or shorter, no device is failed
// for longer or shorter, no alert fires or resolves for it, and times on the page
// are as long ago as before.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var set atomic.Int64
			now := func() time.Time { return golden.SetClock(time.Now(), time.Duration(set.Load())) }
			allocs := &podmap.Map{State: podmap.StateFresh, Time: now(), Confirmed: now(), AllocatableTime: now(), Pods: 1, Allocations: []podmap.Allocation{{
				Pod: podmap.Pod{Namespace: "team", Name: "job"}, Containers: []string{"main"}, Resource: "nvidia.com/gpu", DeviceID: "GPU-a",
				Ref: podmap.ParseID("GPU-a"), Since: now(), After: now().Add(-time.Second),
			}}}
			s := collector.NewSampler(collector.DefaultSettings())
			s.Now = now
			s.Add(clockSource{now})
			s.AddJudge(health.New(health.Builtin(), health.Options{Boot: now().Add(-time.Minute)}))
			j := allocation.New(allocation.Options{Map: func() *podmap.Map { return allocs }}, allocation.DefaultSettings())
			s.AddJudge(j)
			s.AddJudge(attention.New())
			page := exposition.New(s.Latest, prometheus.NewRegistry(), exposition.Options{})
			var mu sync.Mutex
			var notified []engine.Alert
			sent := func() []engine.Alert { // since the last call
				mu.Lock()
				defer mu.Unlock()
				list := notified
				notified = nil
				return list
			}
			e, err := engine.New(engine.Options{Page: page, Rules: engine.Builtin(), Interval: time.Minute, Now: now, Notify: func(list []engine.Alert) {
				mu.Lock()
				defer mu.Unlock()
				notified = append(notified, list...)
			}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			time.Sleep(time.Second)
			go func() { e.Run(ctx); done <- nil }()

			time.Sleep(10 * time.Minute)
			s.Emit(collector.Event{Source: "nvidia", Device: "GPU-a", Kind: collector.EventXid, Code: 79, Time: now().Round(0)}) // as from a worker
			time.Sleep(28 * time.Minute)
			synctest.Wait()
			sent()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			before, alerts := ages(s.Latest()), firing(sent())
			set.Store(int64(by))
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			after := ages(s.Latest())
			for name, was := range before {
				if grown := after[name] - was; math.Abs(grown-600) > 2 && math.Abs(grown) > 2 {
					t.Errorf("by %v: %s is %v and was %v ten minutes ago", by, name, after[name], was)
				}
			}
			if len(before) < 8 || len(after) != len(before) {
				t.Errorf("by %v: %v", by, slices.Sorted(maps.Keys(after)))
			}
			later := sent()
			if diff := cmp.Diff(alerts, firing(later)); diff != "" || !strings.Contains(alerts, "AcceleratorFailed") {
				t.Errorf("by %v: alerts (-before +after):\n%s", by, diff)
			}
			for _, a := range later {
				if now().Sub(a.ResolvedAt) < 24*time.Hour && now().Sub(a.ResolvedAt) > 11*time.Minute {
					continue // before the clock was set
				}
				if !a.ResolvedAt.IsZero() || a.ValidUntil.Sub(now().Round(0)) < -10*time.Minute || now().Sub(a.FiredAt) > time.Hour || a.FiredAt.After(now()) {
					t.Errorf("by %v: %s fired %v ago, resolved at %v, is valid for %v", by, a.Labels["alertname"], now().Sub(a.FiredAt), a.ResolvedAt, a.ValidUntil.Sub(now()))
				}
			}
			r := j.Report()
			if held := s.Latest().Time.Round(0).Sub(r.Devices[0].Holders[0].Since); (held - 50*time.Minute).Abs() > 5*time.Second {
				t.Errorf("by %v: who shows %v", by, held)
			}
			cancel()
			<-done
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// ages returns the values of a device that grow with time; times of day as the time
// since then.
func ages(s *collector.Snapshot) map[string]float64 {
	out := map[string]float64{}
	now := float64(s.Time.UnixMilli()) / 1000
	all := slices.Clone(s.Node)
	for _, d := range s.Devices {
		all = append(all, d.Readings...)
		out["health since"] = s.Time.Round(0).Sub(d.Verdict.Since.Round(0)).Seconds()
	}
	for _, r := range all {
		switch name := r.Metric.Name; {
		case strings.HasSuffix(name, "_timestamp_seconds"):
			out[name] = now - r.Value
		case r.Metric == collector.PCIeReceive:
			out[name] = r.Value / 1000
		case strings.HasPrefix(name, "accel_allocation_") && (strings.HasSuffix(name, "_seconds") || strings.HasSuffix(name, "_seconds_total")):
			out[name] = r.Value
		}
	}
	return out
}

// firing returns the names of the firing alerts among notifications.
func firing(sent []engine.Alert) string {
	names := map[string]bool{}
	for _, a := range sent {
		if a.ResolvedAt.IsZero() {
			names[a.Labels["alertname"]] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}
