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
		if d := s.round().Distributions; d != nil {
			s.Errorf("%d calls are measured without a request", len(d))
		}
		s.end()
		s.open(Options{CallTimes: true, SlowInterval: time.Hour})
		s.round()
		first, second := map[string]*collector.Distribution{}, map[string]*collector.Distribution{}
		for _, d := range s.round().Distributions {
			first[d.Labels[1]] = &d
		}
		for _, d := range s.round().Distributions {
			second[d.Labels[1]] = &d
		}
		for call, each := range map[string]uint64{
			"nvmlDeviceGetCount_v2": 1, "nvmlDeviceGetHandleByIndex_v2": 8, "nvmlDeviceGetFieldValues": 8, "field_186": 8,
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
