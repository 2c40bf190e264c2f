package health_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// source is a Source with the devices that a test sets.
type source struct {
	name  string
	round atomic.Pointer[collector.Round]
}

func (s *source) Name() string { return s.name }
func (s *source) Close() error { return nil }
func (s *source) Sample(context.Context) (collector.Round, error) {
	r := s.round.Load()
	if r == nil {
		return collector.Round{}, collector.ErrDriver
	}
	out := collector.Round{}
	for _, d := range r.Devices {
		d.Sampled = time.Now()
		d.Readings = append([]collector.Reading(nil), d.Readings...)
		out.Devices = append(out.Devices, d)
	}
	return out, nil
}

func (s *source) set(d ...collector.Device) { s.round.Store(&collector.Round{Devices: d}) }

// covers is what each source sees of the node.
var covers = map[string][]collector.Cover{
	"nvidia": {{Class: collector.GPU, Vendor: "nvidia"}},
	"pcie":   {{Class: collector.GPU, Bus: true}},
}

// sample runs a Sampler with a Judge until the end of the test.
func sample(t *testing.T, interval time.Duration, sources ...*source) *collector.Sampler {
	s := collector.NewSampler(collector.Settings{Interval: interval, ForgetAfter: time.Hour})
	for _, src := range sources {
		s.Add(src, covers[src.name]...)
	}
	s.AddJudge(health.New(health.Builtin(), health.Options{}))
	var running sync.WaitGroup
	running.Go(func() { s.Run(t.Context()) })
	t.Cleanup(running.Wait)
	return s
}
