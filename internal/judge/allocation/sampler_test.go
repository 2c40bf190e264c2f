package allocation_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// source has one idle GPU.
type source struct{}

func (source) Name() string { return "nvidia" }
func (source) Close() error { return nil }

func (source) Sample(context.Context) (collector.Round, error) {
	d := collector.Device{ID: gpuA, Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{gpuA}, Sampled: time.Now()}
	d.Set(collector.UtilizationRatio, 0, "compute")
	return collector.Round{Devices: []collector.Device{d}}, nil
}

// TestSampler runs the Judge in a Sampler, with an event between two samples.
func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.now = time.Now()
		r.list(alloc("a", gpu, gpuA, func(h *podmap.Allocation) { h.Since = time.Now() }))
		s := collector.NewSampler(collector.DefaultSettings())
		s.Add(source{})
		j := allocation.New(r.options, r.settings)
		s.AddJudge(j)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		s.Emit(collector.Event{Source: "nvidia", Device: gpuA, Kind: collector.EventXid, Code: 79, Time: time.Now()})
		synctest.Wait()
		r.snap = s.Latest()
		r.want(collector.AllocationInfo, "A a 1")
		r.want(collector.AllocationSeconds, "A a 120")
		r.want(collector.AllocationIdle, "A a 120")
		if got := r.series(collector.AllocationFault, "fault"); len(got) != 1 {
			t.Errorf("faults: %q", got)
		}
		if idle := j.Report().Devices[0].Holders[0].Idle; idle == nil || *idle != 120 {
			t.Errorf("the report has idle for %v", idle)
		}
		check(t, r.snap)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
