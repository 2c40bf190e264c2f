package exporter_test

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/accel-exporter/accel-exporter/internal/exporter"
)

func registryOf(c prometheus.Collector) *prometheus.Registry {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	return reg
}

// The families are client_golang's, and so are the values as far as they hold
// still.
func TestProcessFamiliesAreTheUsualOnes(t *testing.T) {
	want, err := registryOf(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})).Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, err := registryOf(exporter.NewProcessCollector()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != len(got) {
		t.Fatalf("%d families, want %d", len(got), len(want))
	}
	slack := map[string]float64{ // of a process that is at work in between
		"process_cpu_seconds_total":            1,
		"process_open_fds":                     2,
		"process_virtual_memory_bytes":         256 << 20,
		"process_resident_memory_bytes":        64 << 20,
		"process_network_receive_bytes_total":  1 << 30,
		"process_network_transmit_bytes_total": 1 << 30,
	}
	for i, w := range want {
		g := got[i]
		if w.GetName() != g.GetName() || w.GetHelp() != g.GetHelp() || w.GetType() != g.GetType() {
			t.Errorf("%v, want %v", g, w)
		}
		x := w.Metric[0].GetGauge().GetValue() + w.Metric[0].GetCounter().GetValue()
		y := g.Metric[0].GetGauge().GetValue() + g.Metric[0].GetCounter().GetValue()
		if math.Abs(x-y) > slack[w.GetName()] {
			t.Errorf("%s: %v, want %v", w.GetName(), y, x)
		}
	}
}

// BenchmarkProcess compares the cost of a scrape's process_ families.
func BenchmarkProcess(b *testing.B) {
	for name, c := range map[string]prometheus.Collector{
		"ours":          exporter.NewProcessCollector(),
		"client_golang": collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		b.Run(name, func(b *testing.B) {
			reg := prometheus.NewRegistry()
			reg.MustRegister(c)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if _, err := reg.Gather(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
