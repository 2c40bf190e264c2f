package baseline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
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

// addRandom adds a thousand inputs of n pseudo-random bytes each.
func addRandom(f *testing.F, n int) {
	for seed := range uint64(1000) {
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

// next returns a Snapshot with one or two changes of s.
func (g *generator) next(s *collector.Snapshot) *collector.Snapshot {
	s = snapshot(s.Node, s.Devices...)
	for range 1 + g.below(2) {
		if len(s.Devices) == 0 || g.below(12) == 1 {
			return g.snapshot()
		}
		d := &s.Devices[g.below(len(s.Devices))]
		switch g.below(11) {
		case 0:
			d.Class = g.class()
		case 1:
			d.Vendor = g.text()
		case 2:
			d.Model = g.text()
		case 3:
			d.PCI = g.text()
		case 4:
			d.Readings = append(d.Readings, g.reading(families[g.below(len(families))]))
		case 5:
			d.Readings = d.Readings[:max(0, len(d.Readings)-1)]
		case 6:
			d.Readings = d.Readings[min(1, len(d.Readings)):]
		case 7:
			d.Readings = append(d.Readings, up)
		case 8:
			s.Node = append(s.Node, g.reading(collector.DriverInfo))
		case 9:
			s.Node = s.Node[:max(0, len(s.Node)-1)]
		case 10:
			*d = s.Devices[g.below(len(s.Devices))] // the same device from two sources
		}
	}
	return s
}

// catalogue returns a generated catalogue.
func (g *generator) catalogue() *baseline.Catalogue {
	set := func() []baseline.Pattern {
		return []baseline.Pattern{baseline.Pattern(g.text()), baseline.Pattern(g.text())}[:1+g.below(2)]
	}
	table := func() map[string][]baseline.Pattern {
		return map[string][]baseline.Pattern{g.text(): set(), g.text(): set()}
	}
	c := new(baseline.Catalogue)
	for n := range g.below(4) {
		e := baseline.Entry{Name: baseline.Pattern(fmt.Sprint("e", n))}
		e.Match = []baseline.Match{
			{},
			{Class: string(g.class())},
			{Vendor: baseline.Pattern(g.text())},
			{Model: baseline.Pattern(g.text())},
			{PCIID: baseline.PCIID(g.text())},
		}[g.below(5)]
		e.Approved = baseline.Approved{Driver: set(), Module: set(), Firmware: table(), Bitstream: table(), MIG: []baseline.Layout{baseline.Layout(g.text())}}
		c.Entries = append(c.Entries, e)
	}
	return c
}
