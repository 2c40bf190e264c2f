//go:build linux && cgo

package nvidia

import (
	"slices"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// GPM calls of different GPUs never overlap: a library in which that crashes
// survives.
func TestGPMCallsAreAlone(t *testing.T) {
	faults := [][]string{{"quirk", "gpm-races"}}
	for _, call := range []string{"nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleAlloc", "nvmlGpmQueryDeviceSupport"} {
		faults = append(faults, []string{"slow", "all", "--delay=5ms", "--call=" + call})
	}
	inChild(t, "h100-8", faults, func(s *sampling) {
		s.Until("the activity of every GPU", func(r collector.Round, _ error) bool {
			for _, d := range gpus(r) {
				if _, err := value(d, collector.OccupancyRatio); err != nil {
					return false
				}
			}
			return true
		})
	})
}

// A GPM call that hangs costs the other GPUs nothing.
func TestGPMHang(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		s.Round()
		s.Inject("hang", "5", "--call=nvmlGpmSampleGet")
		s.UntilWithin(300*time.Millisecond, "GPU 5 hangs, and the others are measured", func(r collector.Round, _ error) bool {
			for i, d := range gpus(r) {
				if _, err := value(d, collector.OccupancyRatio); (err == nil) == (i == 5) {
					return false
				}
			}
			return gpus(r)[5].Down == collector.ReasonStuck
		})
		s.Clear("5")
		s.Until("GPU 5 answers", func(r collector.Round, err error) bool { return err == nil && gpus(r)[5].Down == "" })
	})
}

// A GPU without NVLinks has no rate of them, though the driver returns one of 0.
func TestNoNVLinkRate(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"set", "nvlink.count", "error:NOT_SUPPORTED", "0"}, {"set", "nvlink.count", "0", "1"}, {"nvlink", "all", "down", "2"}}, func(s *sampling) {
		r := s.Until("the activity of every GPU", func(r collector.Round, _ error) bool {
			return !slices.ContainsFunc(gpus(r)[:3], func(d collector.Device) bool {
				_, err := value(d, collector.OccupancyRatio)
				return err != nil
			})
		})
		for i, d := range gpus(r)[:2] {
			absent(s, d, collector.NVLinkTransmitRate)
			absent(s, d, collector.NVLinkReceiveRate)
			if _, err := value(d, collector.PCIeReceiveRate); err != nil {
				s.Errorf("GPU %d: %v", i, err)
			}
		}
		want(s, gpus(r)[2], 0, collector.NVLinkTransmitRate)
	})
}
