package gpumetrics_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/gpumetrics"
)

// TestSizes: the sizes that a C compiler gives the structs of the kernel's header.
func TestSizes(t *testing.T) {
	for version, want := range map[string]int{"1.3": 120, "1.4": 288, "1.5": 360, "1.6": 1664, "1.7": 2208, "1.8": 3872, "2.1": 120, "2.2": 128, "2.3": 152, "2.4": 168, "3.0": 264} {
		b, err := gpumetrics.Build(version)
		if err != nil || len(b) != want {
			t.Errorf("%s: %d bytes, want %d (%v)", version, len(b), want, err)
		}
	}
}

func TestBuild(t *testing.T) {
	b, err := gpumetrics.Build("1.8 temperature_hotspot=61 current_gfxclk=2100,132 xcp1.gfx_busy_inst=7")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"temperature_hotspot": 61, "current_gfxclk": 2100, "xcp1.gfx_busy_inst": 7, "temperature_mem": 0xffff} {
		if got, err := gpumetrics.Get(b, name, 0); got != want || err != nil {
			t.Errorf("%s is %d, want %d (%v)", name, got, want, err)
		}
	}
	for _, text := range []string{"", "2.0", "1.8 x=1", "1.8 temperature_hotspot", "1.8 temperature_hotspot=1,2", "1.8 temperature_hotspot=x"} {
		if _, err := gpumetrics.Build(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
