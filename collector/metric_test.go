package collector

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestDeviceSet(t *testing.T) {
	percent := define(Metric{Name: "test_ratio", Kind: Gauge, Range: ratio})
	plain := define(Metric{Name: "test_bytes", Kind: Gauge})
	fact := define(Metric{Name: "test_info", Kind: Info})
	table = table[:len(table)-3]
	for _, c := range []struct {
		m  *Metric
		v  float64
		ok bool
	}{
		{percent, 0, true},
		{percent, 1, true},
		{percent, 0.5, true},
		{percent, 1.0001, false},
		{percent, -0.0001, false},
		{percent, math.NaN(), false},
		{percent, math.Inf(1), false},
		{plain, 0, true},
		{plain, 1 << 60, true},
		{plain, -1, false},
		{plain, math.MaxUint64, false}, // NVML's sentinel for "no value"
		{plain, math.NaN(), false},
		{plain, math.Inf(1), false},
		{plain, math.Inf(-1), false},
		{fact, 1, true},
		{fact, 0, false},
	} {
		var d, want Device
		d.Set(c.m, c.v, "x")
		if c.ok {
			want.Readings = []Reading{{c.m, []string{"x"}, c.v}}
		} else {
			want.Rejects = []Reject{{c.m, RejectRange}}
		}
		if diff := cmp.Diff(want, d, sameRound); diff != "" {
			t.Errorf("Set(%s, %v) (-want +got):\n%s", c.m.Name, c.v, diff)
		}
	}
	var d Device
	d.SetBool(percent, true)
	d.SetBool(percent, false)
	if diff := cmp.Diff([]Reading{{percent, nil, 1}, {percent, nil, 0}}, d.Readings, sameRound); diff != "" {
		t.Errorf("SetBool (-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	rows := Table()
	for i, m := range rows {
		if i > 0 && rows[i-1].Name >= m.Name {
			t.Errorf("%s follows %s", m.Name, rows[i-1].Name)
		}
		if byIndex(m.Index()) != m {
			t.Errorf("%s: index %d belongs to another metric", m.Name, m.Index())
		}
		if !strings.HasPrefix(m.Name, "accel_") || !strings.HasSuffix(m.Help, ".") || len(m.From) == 0 {
			t.Errorf("%s: needs the prefix accel_, a sentence of help and an origin", m.Name)
		}
		if (m.Kind == Counter) != strings.HasSuffix(m.Name, "_total") || (m.Kind == Info) != strings.HasSuffix(m.Name, "_info") {
			t.Errorf("%s: the suffix of the name does not match kind %d", m.Name, m.Kind)
		}
		if m.Kind < Gauge || m.Kind > Histogram || (m.Kind == Histogram) != (m.Buckets != nil) || !slices.IsSorted(m.Buckets) || m.Range.Min > m.Range.Max || len(m.Labels) > 16 {
			t.Errorf("%s: kind %d, range %v, %d labels", m.Name, m.Kind, m.Range, len(m.Labels))
		}
		if slices.Contains(m.Labels, "device") || slices.Contains(m.Labels, "parent") {
			t.Errorf("%s: device and parent are labels of the scope", m.Name)
		}
	}
	if got := byIndex(-1); got != nil {
		t.Errorf("index -1 is %s", got.Name)
	}
	if got := byIndex(len(rows)); got != nil {
		t.Errorf("an index past the end is %s", got.Name)
	}
	for kind, want := range map[Kind]string{Gauge: "gauge", Counter: "counter", Info: "gauge", Mark: "gauge", Histogram: "histogram"} {
		if kind.Type() != want || kind.Stays() != (kind != Gauge) {
			t.Errorf("kind %d is a %s, stays %v", kind, kind.Type(), kind.Stays())
		}
	}
	rows[0] = nil
	if Table()[0] == nil {
		t.Error("Table returns the package's slice, not a copy")
	}
}

// TestBoundsKeepTheRound: a source that returns its readings again still has all of them.
func TestBoundsKeepTheRound(t *testing.T) {
	var kept Device
	kept.Set(PowerWatts, 588)
	kept.Set(PowerLimit, 70, "max")
	d := kept
	d.checkBounds()
	if len(kept.Readings) != 2 || kept.Readings[0].Metric != PowerWatts || kept.Readings[1].Metric != PowerLimit {
		t.Errorf("the source has %v", kept.Readings)
	}
}

// TestBounds: a value that contradicts the device's own limit is not served, and a reading
// names its family.
func TestBounds(t *testing.T) {
	for watts, ok := range map[float64]bool{70: true, 140: true, 588: false} {
		gpu := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia"}
		gpu.Set(PowerWatts, watts)
		gpu.Set(PowerLimit, 70, "max")
		gpu.Set(PowerLimit, 35, "min")
		synctest.Test(t, func(t *testing.T) {
			s := NewSampler(DefaultSettings())
			s.Add(newFake("nvidia", gpu), Cover{Class: GPU, Vendor: "nvidia"})
			run(t, s)
			tick()
			if ok {
				expect(t, s, []*Metric{PowerWatts, ReadingImplausible}, fmt.Sprintf("power_watts{GPU-a} %v", watts))
			} else {
				expect(t, s, []*Metric{PowerWatts, ReadingImplausible}, "device_reading_implausible{GPU-a,accel_power_watts} 1")
			}
		})
	}
}
