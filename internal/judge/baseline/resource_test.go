package baseline_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

const interfaceA = "ce48969398f05f33946d560708be108a"

func decode(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzExpectationFromResource: a decoded design has valid ids, and encoding them
// returns the same resource name.
func FuzzExpectationFromResource(f *testing.F) {
	const af = "fpga.intel.com/af-ce4.d84."
	ids := strings.TrimPrefix(promisedA, af)
	short := af + base64.RawURLEncoding.EncodeToString(decode(f, interfaceA+afuA)[:31])
	for _, s := range []string{
		promisedA, "fpga.intel.com/region-" + interfaceA, "amd.com/xilinx_u55c_gen3x16_xdma_base_3-0",
		"xilinx.com/fpga-xilinx_u200_xdma_201830_1-1535712995", af, "", "amd.com/xilinx_u250", "xilinx.com/fpga-ZynqMP-ZCU102",
		"x.amd.com/xilinx_u55c_base_3-0", "amd.com/xilinx_u55c_base_3-0x",
		af + ids[1:], af + ids + "A", af + ids[:10] + "\n" + ids[10:], af + ids[:42] + "t", af + ids[:42] + "=", short + "\n",
		"fpga.intel.com/af-ce5.d84." + ids, "fpga.intel.com/af-ce4.d8." + ids, "x" + promisedA, "other.example/af-ce4.d84." + ids,
		"fpga.intel.com/region-" + interfaceA[1:], "fpga.intel.com/region-" + strings.ToUpper(interfaceA), "fpga.intel.com/region-" + interfaceA + "0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, resource string) {
		e, ok := baseline.ExpectationFromResource(resource)
		if !ok {
			return
		}
		for _, id := range []string{e.Interface, e.AFU} {
			if b, err := hex.DecodeString(id); err != nil || len(b) != 16 && id != "" || id != strings.ToLower(id) {
				t.Errorf("%q: id %q", resource, id)
			}
		}
		if e.AFU != "" {
			raw, _ := hex.DecodeString(e.Interface + e.AFU)
			name := "fpga.intel.com/af-" + e.Interface[:3] + "." + e.AFU[:3] + "." + base64.RawURLEncoding.EncodeToString(raw)
			if name != resource {
				t.Errorf("%q encodes as %q", resource, name)
			}
		}
		if e.AFU == "" && e.Interface != "" && resource != "fpga.intel.com/region-"+e.Interface {
			t.Errorf("%q has the interface %s", resource, e.Interface)
		}
		if shell := e.Shell + "-" + e.ShellTimestamp; e.Shell != "" && resource != "xilinx.com/fpga-"+shell && resource != "amd.com/"+shell {
			t.Errorf("%q: shell %q", resource, e.Shell)
		}
	})
}

// TestResources: each design that the resources of a card encode must be in one of its
// regions.
func TestResources(t *testing.T) {
	promisedB := "fpga.intel.com/af-ce4.001." + base64.RawURLEncoding.EncodeToString(decode(t, interfaceA+afuB))
	two := func(afu0, afu1 string, loaded1 float64) collector.Device {
		d := n3000("F", afu0, 1)
		d.Readings = append(d.Readings, reading(collector.FPGABitstreamLoaded, loaded1, "port1"))
		if afu1 != "" {
			d.Readings = append(d.Readings, info(collector.FPGABitstreamInfo, "port1", "afu", afu1))
		}
		return d
	}
	alveo := collector.Device{ID: "F", Class: collector.FPGA, Vendor: "amd", Readings: []collector.Reading{
		up, info(collector.FPGABitstreamInfo, "static", "shell", "xilinx_u250_xdma_201830_2"),
	}}
	both := afuB + "," + afuA
	for name, c := range map[string]struct {
		resources []string
		device    collector.Device
		want      string // of held/afu or held/shell
	}{
		"one of two ports":                        {[]string{promisedA}, two(afuB, afuA, 1), "want " + afuA + " have " + both + ": 0"},
		"two designs":                             {[]string{promisedA, promisedB}, two(afuB, afuA, 1), "want " + both + " have " + both + ": 0"},
		"one design missing":                      {[]string{promisedA, promisedB}, two(afuA, afuA, 1), "want " + both + " have " + afuA + ": 1"},
		"one design missing, one port not loaded": {[]string{promisedA, promisedB}, two(afuA, afuA, 0), ""},
		"a card without functions":                {[]string{promisedA}, alveo, ""},
		"shell":                                   {[]string{"xilinx.com/fpga-xilinx_u250_xdma_201830_2-1561656294"}, alveo, "want xilinx_u250_xdma_201830_2 have xilinx_u250_xdma_201830_2: 0"},
		"another shell":                           {[]string{"amd.com/xilinx_u250_gen3x16_xdma_4_1-0"}, alveo, "want xilinx_u250_gen3x16_xdma_4_1 have xilinx_u250_xdma_201830_2: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := judged(nil, baseline.Options{Resources: func(id string) []string { return c.resources }}, snapshot(nil, c.device))
			got := ""
			for _, l := range lines {
				if rest, ok := strings.CutPrefix(l, "F held/afu "); ok {
					got += rest
				} else if rest, ok := strings.CutPrefix(l, "F held/shell "); ok {
					got += rest
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
