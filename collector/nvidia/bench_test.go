//go:build linux && cgo

package nvidia

import (
	"syscall"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// BenchmarkSample8GPU is a steady round of eight GPUs, without slow readings,
// on one core; native-ns/op is the time of the same library calls alone, and
// overhead/native the ratio of the rest to that.
func BenchmarkSample8GPU(b *testing.B) {
	inChild(b, "h100-8", [][]string{{"mig", "4", "off"}}, func(s *sampling) {
		gpmWindow = 0
		s.open(Options{SlowInterval: 24 * time.Hour})
		for range 3 {
			s.Round()
		}
		b.ReportAllocs()
		b.ResetTimer()
		start := cpuTime()
		for range b.N {
			s.Round()
		}
		total := float64(cpuTime()-start) / float64(b.N)
		b.StopTimer()
		readings := 0
		for _, d := range s.Round().Devices {
			readings += len(d.Readings)
		}
		native, calls := nativeRound(s.source, b.N)
		b.ReportMetric(total, "cpu-ns/op")
		b.ReportMetric(native, "native-ns/op")
		b.ReportMetric((total-native)/native, "overhead/native")
		b.ReportMetric(float64(calls), "calls/op")
		b.ReportMetric(float64(readings), "readings/op")
	})
}

// cpuTime is the processor time of this process: other work on the machine
// does not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bareGPU is the GPU of nativeRound.
type bareGPU struct {
	handle  nvml.Device
	values  []nvml.FieldValue
	samples [2]nvml.GpmSample
	query   *gpmQuery
}

func nativeRound(s *Source, n int) (ns float64, calls int) {
	api := s.lib.api
	var list []*bareGPU
	for i := range s.gpus {
		g := &bareGPU{query: new(gpmQuery)}
		g.handle, _ = api.DeviceGetHandleByIndex(i)
		for _, f := range fastFields { // the paced ones are read less often
			g.values = append(g.values, nvml.FieldValue{FieldId: f.id})
		}
		for j := range g.samples {
			g.samples[j], _ = api.GpmSampleAlloc()
			g.samples[j].Get(g.handle)
		}
		g.query.version, g.query.count = nvml.GPM_METRICS_GET_VERSION, uint32(len(gpmMetrics))
		g.query.sample1, g.query.sample2 = sampleAddress(g.samples[0]), sampleAddress(g.samples[1])
		for j, m := range gpmMetrics {
			g.query.values[j].id = uint32(m.id)
		}
		list = append(list, g)
	}
	start := cpuTime()
	for range n {
		api.DeviceGetCount()
		calls = 1
		for i, g := range list {
			calls += g.round(api, i)
		}
	}
	return float64(cpuTime()-start) / float64(n), calls
}

func (g *bareGPU) round(api nvml.Interface, i int) int {
	h, _ := api.DeviceGetHandleByIndex(i)
	h.GetMigMode()
	h.GetMemoryInfo_v2()
	h.GetUtilizationRates()
	h.GetEncoderUtilization()
	h.GetDecoderUtilization()
	h.GetJpgUtilization()
	h.GetOfaUtilization()
	h.GetTemperature(nvml.TEMPERATURE_GPU)
	h.GetFieldValues(g.values)
	h.GetMarginTemperature()
	for _, c := range clocks {
		h.GetClockInfo(c.clock)
	}
	h.GetCurrentClocksEventReasons()
	h.GetPerformanceState()
	g.samples[1].Get(h)
	g.query.metricsGet()
	return 18
}
