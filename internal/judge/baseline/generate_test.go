package baseline_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// generator makes Snapshots from fuzz data. It uses few texts, so that values often
// match.
type generator struct {
	data  []byte
	texts []string
}

// newGenerator adds the lines of data before the first empty line to the built-in
// texts.
func newGenerator(data []byte) *generator {
	head, rest, _ := strings.Cut(string(data), "\n\n")
	texts := []string{
		"", "a", "b", "*", "a*", "nvidia", "amd", "8086:0b30", "10de:2330", "static", "port0", "afu", "pr_interface", "fim", "shell",
		"driver", "vbios", "1g.10gb", "3g.40gb", "current", "sr", afuA, strings.ToUpper(afuA),
		"d8424dc4-a4a3-c413-f89e-433683f9040b", "9007199254740993", "yes", "\"quoted\\\" # : {", "\u2028", "\x00\xff", strings.Repeat("é", 120),
	}
	return &generator{data: []byte(rest), texts: append(texts, strings.Split(head, "\n")...)}
}

// addRandom adds inputs of n pseudo-random bytes each.
func addRandom(f *testing.F, n int) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(append([]byte("x\nNVIDIA H100\nmodel: [x]\n\n"), data...))
	}
}

func (g *generator) below(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b) % n
}

func (g *generator) text() string { return g.texts[g.below(len(g.texts))] }

func (g *generator) reading(m *collector.Metric) collector.Reading {
	r := collector.Reading{Metric: m, Value: float64(g.below(9))}
	if m.Range.Max == 1 {
		r.Value = min(r.Value, 1)
	}
	for range m.Labels {
		r.Labels = append(r.Labels, g.text())
	}
	return r
}

var families = []*collector.Metric{
	collector.FirmwareInfo, collector.FPGABitstreamInfo, collector.FPGABitstreamLoaded, collector.FPGAInfo,
	collector.PCIeFunctionInfo, collector.PCIeDriverBound, collector.FPGARootKeyInfo, collector.MIGMode,
	collector.MIGInstances, collector.PowerWatts,
}

func (g *generator) class() collector.Class {
	return []collector.Class{collector.GPU, collector.FPGA, collector.GPU, collector.Switch, "", "toaster"}[g.below(6)]
}

func (g *generator) device() collector.Device {
	d := collector.Device{ID: g.text(), Class: g.class(), Vendor: g.text(), Model: g.text(), PCI: g.text()}
	if g.below(9) == 1 {
		d.Parent = g.text()
	}
	if g.below(4) != 3 {
		d.Readings = append(d.Readings, up)
	}
	for range g.below(8) {
		d.Readings = append(d.Readings, g.reading(families[g.below(len(families))]))
	}
	return d
}

func (g *generator) snapshot() *collector.Snapshot {
	s := new(collector.Snapshot)
	for range g.below(3) {
		s.Node = append(s.Node, g.reading(collector.DriverInfo))
	}
	for range g.below(5) {
		s.Devices = append(s.Devices, g.device())
	}
	return s
}
