//go:build linux && cgo

package nvidia

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Calls are measured only on request; those of MIG devices are.
func TestCallTimes(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		if d := s.Round().Distributions; d != nil {
			s.Errorf("%d calls are measured without a request", len(d))
		}
		s.Close()
		s.open(Options{CallTimes: true, SlowInterval: time.Hour})
		s.Round()
		first, second := map[string]*collector.Distribution{}, map[string]*collector.Distribution{}
		for _, d := range s.Round().Distributions {
			first[d.Labels[1]] = &d
		}
		for _, d := range s.Round().Distributions {
			second[d.Labels[1]] = &d
		}
		// Each of the paced batches takes a call of its own; on a slow machine one
		// is due between the rounds.
		batches := uint64(0)
		for _, field := range []string{"field_82", "field_83"} {
			batches += second[field].Count() - first[field].Count()
		}
		for call, each := range map[string]uint64{
			"nvmlDeviceGetCount_v2": 1, "nvmlDeviceGetHandleByIndex_v2": 8, "nvmlDeviceGetFieldValues": 8 + batches, "field_186": 8,
			"nvmlDeviceGetMemoryInfo_v2": 12, "nvmlDeviceGetVbiosVersion": 0,
		} {
			a, b := first[call], second[call]
			if a == nil || b == nil || b.Count()-a.Count() != each || b.Sum <= 0 {
				s.Errorf("%s: %+v, then %+v; want %d more calls", call, a, b, each)
			}
		}
		if _, waits := second["nvmlEventSetWait_v2"]; waits {
			s.Error("a wait counts as a slow call")
		}
	})
}

// Expensive values are read less often than the others, and repeated.
func TestPacedFields(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		s.open(Options{CallTimes: true})
		var r collector.Round
		for range 5 {
			r = s.Round()
			for _, d := range gpus(r) {
				for _, x := range []collector.Reading{
					{Metric: collector.TemperatureCelsius, Labels: labelMemory},
					{Metric: collector.PowerAverage},
					{Metric: collector.EnergyJoules},
					{Metric: collector.PCIeReplays},
				} {
					if _, err := value(d, x.Metric, x.Labels...); err != nil {
						s.Errorf("%s: %s%v: %v", d.ID, x.Metric.Name, x.Labels, err)
					}
				}
			}
		}
		n := map[string]uint64{}
		for _, d := range r.Distributions {
			n[d.Labels[1]] = d.Count()
		}
		for _, call := range []string{"field_82", "field_185", "field_83", "field_94", "field_173", "nvmlDeviceGetProcessUtilization"} {
			if n[call] == 0 || n[call] > n["field_186"]/2 {
				s.Errorf("%d reads of %s, %d of field_186", n[call], call, n["field_186"])
			}
		}
	})
}
