package exposition_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// uuid returns a stable UUID for a seed.
func uuid(prefix string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 77))
	return fmt.Sprintf("%s-%08x-%04x-%04x-%04x-%012x", prefix, r.Uint32(), r.Uint32()&0xffff, r.Uint32()&0xffff, r.Uint32()&0xffff, r.Uint64()&0xffffffffffff)
}

// labelValues are values that labels of the table take on a real node.
var labelValues = map[string][]string{
	"architecture":    {"hopper"},
	"class":           {"gpu"},
	"clock":           {"sm", "memory", "graphics", "video"},
	"engine":          {"compute", "memory", "encoder", "decoder", "jpeg", "ofa"},
	"kind":            {"sm", "memory"},
	"limit":           {"enforced", "default", "min", "max"},
	"link":            {"0", "1", "2", "3", "4", "5"},
	"location":        {"dram", "sram"},
	"model":           {"NVIDIA H100 80GB HBM3"},
	"pci_address":     {"0000:1b:00.0"},
	"profile":         {"1g.10gb"},
	"reason":          {"", "hw_thermal", "sw_power_cap"},
	"sensor":          {"gpu", "memory"},
	"serial":          {"1654922006788"},
	"severity":        {"corrected", "uncorrected"},
	"source":          {"nvidia", "pcie"},
	"unit":            {"graphics", "sm", "tensor", "fp64", "dram"},
	"vendor":          {"nvidia"},
	"xid":             {"13", "31", "48", "63", "74", "79", "94"},
	"version":         {"96.00.74.00.01", "535.161.08"},
	"component":       {"vbios", "inforom"},
	"cluster_uuid":    {"00000000-0000-0000-0000-000000000000"},
	"library_version": {"12.535.161.08"},
}

// combination returns the nth values for the labels of m, and false when
// there are no more.
func combination(m *collector.Metric, n int) ([]string, bool) {
	values := make([]string, len(m.Labels))
	for i, name := range m.Labels {
		choice := labelValues[name]
		if choice == nil {
			choice = []string{"a"}
		}
		values[i] = choice[n%len(choice)]
		n /= len(choice)
	}
	return values, n == 0
}

// number returns a value such as m takes; it differs from one tick to the
// next, except for an Info.
func number(m *collector.Metric, series, tick uint64) float64 {
	x := rand.New(rand.NewPCG(series, 5)).Uint64N(1_000_000) + tick*7
	switch {
	case m.Kind == collector.Info:
		return 1
	case m.Range.Max == 1 && strings.HasSuffix(m.Name, "_ratio"):
		return float64(x%101) / 100
	case m.Range.Max == 1:
		return float64((x + tick/7) % 2)
	case strings.Contains(m.Name, "timestamp"):
		return 1.76e9 + float64(x*131)/1000
	case strings.Contains(m.Name, "celsius"):
		return float64(30 + x%60)
	case strings.Contains(m.Name, "watts"):
		return float64(70_000+x%630_000) / 1000
	case strings.Contains(m.Name, "joules"):
		return float64(x*1_234_577) / 1000
	case strings.Contains(m.Name, "hertz"):
		return float64(210+x%1770) * 1e6
	case strings.Contains(m.Name, "seconds"):
		return float64(x*104_729) / 1e6
	case strings.Contains(m.Name, "per_second"):
		return float64(x * 48_611)
	case strings.Contains(m.Name, "bytes"):
		return float64(x << 17)
	}
	return float64(x % 5000)
}

// device returns a device with about n series.
func device(id, parent string, n int, seed uint64) collector.Device {
	d := collector.Device{ID: id, Parent: parent, Class: collector.GPU, Vendor: "nvidia"}
	for round := 0; len(d.Readings) < n && round < 64; round++ {
		for _, m := range rows() {
			if m.Scope != collector.PerDevice || len(d.Readings) >= n {
				continue
			}
			if labels, ok := combination(m, round); ok && (round == 0 || len(m.Labels) > 0) {
				series := seed<<16 + uint64(len(d.Readings))
				d.Readings = append(d.Readings, collector.Reading{Metric: m, Labels: labels, Value: number(m, series, 0)})
			}
		}
	}
	return d
}

// rows are the families of the table whose series are Readings.
func rows() []*collector.Metric {
	return slices.DeleteFunc(collector.Table(), func(m *collector.Metric) bool { return m.Kind == collector.Histogram })
}

// node returns a Snapshot of gpus devices with partitions each and about n
// series per device (per partition, where there are any).
func node(gpus, partitions, n int) *collector.Snapshot {
	s := &collector.Snapshot{Seq: 1, Time: time.Unix(1_760_000_000, 0)}
	for g := range gpus {
		id := uuid("GPU", uint64(g))
		whole := n
		if partitions > 0 {
			whole = 10
		}
		s.Devices = append(s.Devices, device(id, "", whole, uint64(g)))
		for p := range partitions {
			seed := uint64(1000 + g*16 + p)
			s.Devices = append(s.Devices, device(uuid("MIG", seed), id, n, seed))
		}
	}
	for _, m := range rows() {
		if m.Scope == collector.PerNode {
			labels, _ := combination(m, 0)
			s.Node = append(s.Node, collector.Reading{Metric: m, Labels: labels, Value: number(m, 9, 0)})
		}
	}
	sortDevices(s)
	return s
}

// next returns s one tick on: the same series, every value another.
func next(s *collector.Snapshot) *collector.Snapshot {
	n := &collector.Snapshot{Seq: s.Seq + 1, Time: s.Time.Add(time.Second)}
	for i, d := range s.Devices {
		d.Readings = renumber(d.Readings, uint64(i), n.Seq)
		n.Devices = append(n.Devices, d)
	}
	n.Node = renumber(s.Node, 9, n.Seq)
	return n
}

func renumber(rs []collector.Reading, seed, tick uint64) []collector.Reading {
	out := make([]collector.Reading, len(rs))
	for i, r := range rs {
		r.Value = number(r.Metric, seed<<16+uint64(i), tick)
		out[i] = r
	}
	return out
}
