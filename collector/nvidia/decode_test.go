//go:build linux && cgo

package nvidia

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

func raw(v uint64) (b [8]byte) {
	binary.NativeEndian.PutUint64(b[:], v)
	return b
}

func TestFieldNumber(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kind   nvml.ValueType
		bits   uint64
		signed bool
		want   float64
		reason string
	}{
		{"unsigned int", nvml.VALUE_TYPE_UNSIGNED_INT, 71, false, 71, ""},
		{"only its own bytes count", nvml.VALUE_TYPE_UNSIGNED_INT, 0xdead_0000_0047, false, 71, ""},
		{"not available, 32 bits", nvml.VALUE_TYPE_UNSIGNED_INT, math.MaxUint32, false, 0, collector.RejectSentinel},
		{"not available, 64 bits", nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, math.MaxUint64, false, 0, collector.RejectSentinel},
		{"32 bits of a 64-bit number", nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, math.MaxUint32, false, math.MaxUint32, ""},
		{"DCGM's blank", nvml.VALUE_TYPE_UNSIGNED_LONG, blank64, false, 0, collector.RejectSentinel},
		{"not available, 16 bits", nvml.VALUE_TYPE_UNSIGNED_SHORT, math.MaxUint16, false, 0, collector.RejectSentinel},
		{"unsigned short", nvml.VALUE_TYPE_UNSIGNED_SHORT, 7, false, 7, ""},
		{"offset of a limit", nvml.VALUE_TYPE_SIGNED_INT, 0xffff_fffe, true, -2, ""},
		{"offset of -1 is one", nvml.VALUE_TYPE_SIGNED_INT, 0xffff_ffff, true, -1, ""},
		{"offset in an unsigned type", nvml.VALUE_TYPE_UNSIGNED_INT, 0xffff_fff8, true, -8, ""},
		{"count of -1", nvml.VALUE_TYPE_SIGNED_INT, 0xffff_ffff, false, 0, collector.RejectSentinel},
		{"count of -1, long", nvml.VALUE_TYPE_SIGNED_LONG_LONG, math.MaxUint64, false, 0, collector.RejectSentinel},
		{"double", nvml.VALUE_TYPE_DOUBLE, math.Float64bits(45), false, 45, ""},
		{"integer declared as a double", nvml.VALUE_TYPE_DOUBLE, 45, false, 45, ""},
		{"not available, declared as a double", nvml.VALUE_TYPE_DOUBLE, math.MaxUint32, false, 0, collector.RejectSentinel},
		{"fraction", nvml.VALUE_TYPE_DOUBLE, math.Float64bits(0.1), false, 0, collector.RejectType},
		{"no number", nvml.VALUE_TYPE_DOUBLE, math.Float64bits(math.NaN()), false, 0, collector.RejectType},
		{"no type", nvml.VALUE_TYPE_COUNT, 1, false, 0, collector.RejectType},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, reason := fieldNumber(uint32(tc.kind), raw(tc.bits), tc.signed)
			if v != tc.want || reason != tc.reason {
				t.Errorf("got %v, %q; want %v, %q", v, reason, tc.want, tc.reason)
			}
		})
	}
}

// Whatever a driver answers is a whole number or a reason, never both.
func FuzzFieldNumber(f *testing.F) {
	for kind := range uint32(8) {
		f.Add(kind, uint64(71), false)
		f.Add(kind, uint64(math.MaxUint64), true)
	}
	f.Fuzz(func(t *testing.T, kind uint32, bits uint64, signed bool) {
		v, reason := fieldNumber(kind, raw(bits), signed)
		if reason != "" && v != 0 {
			t.Errorf("%v and %q", v, reason)
		}
		if v != math.Trunc(v) || math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%v is no whole number", v)
		}
	})
}

// A batch yields only readings of its family and within the family's range, for
// any values.
func FuzzDeliver(f *testing.F) {
	f.Add(uint(0), uint32(1), uint64(3))
	f.Add(uint(5), uint32(3), uint64(math.MaxUint64))
	fields := append(append(append([]field(nil), fastFields...), slowFields...), thermalPolicy)
	for _, l := range linkFields {
		fields = append(fields, l.ofLink(17))
	}
	f.Fuzz(func(t *testing.T, i uint, kind uint32, bits uint64) {
		d := collector.Device{}
		fields[i%uint(len(fields))].deliver(&gpu{offsets: map[int]float64{}}, &d, &nvml.FieldValue{ValueType: kind, Value: raw(bits)})
		for _, r := range d.Readings {
			if !r.Metric.Range.Contains(r.Value) || len(r.Labels) != len(r.Metric.Labels) {
				t.Errorf("%s%v %v", r.Metric.Name, r.Labels, r.Value)
			}
		}
	})
}

func TestHealthMask(t *testing.T) {
	mask := uint32(1<<0 | 2<<2 | 0<<4 | 3<<6 | 4<<8)
	for shift, want := range map[uint][2]bool{0: {true, true}, 2: {false, true}, 4: {false, false}, 6: {false, false}} {
		if fault, known := faultBit(mask, shift); fault != want[0] || known != want[1] {
			t.Errorf("bits at %d: fault %v, known %v; want %v", shift, fault, known, want)
		}
	}
	for mask, want := range map[uint32][2]bool{0: {false, false}, 1 << 8: {false, true}, 4 << 8: {true, true}, 15 << 8: {true, true}} {
		if fault, known := misconfigured(mask); fault != want[0] || known != want[1] {
			t.Errorf("%#x: fault %v, known %v; want %v", mask, fault, known, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for want, p := range map[string]nvml.PciInfo{
		"0000:1b:00.0":  {Bus: 0x1b},
		"0001:c1:1f.0":  {Domain: 1, Bus: 0xc1, Device: 0x1f},
		"10000:01:00.0": {Domain: 0x10000, Bus: 1},
	} {
		if got := pciAddress(p); got != want {
			t.Errorf("%+v = %s, want %s", p, got, want)
		}
	}
	if got := uuidOf([16]uint8{1, 0xab, 15: 0xff}); got != "01ab0000-0000-0000-0000-0000000000ff" {
		t.Error(got)
	}
}

func TestMIGProfile(t *testing.T) {
	const a100, h100 = 40 << 30, 79 << 30
	for want, tc := range map[string]struct {
		a     nvml.DeviceAttributes
		total uint64
	}{
		"1g.5gb":     {nvml.DeviceAttributes{GpuInstanceSliceCount: 1, ComputeInstanceSliceCount: 1, MemorySizeMB: 4864}, a100},
		"3g.40gb":    {nvml.DeviceAttributes{GpuInstanceSliceCount: 3, ComputeInstanceSliceCount: 3, MemorySizeMB: 40320}, h100},
		"1c.3g.20gb": {nvml.DeviceAttributes{GpuInstanceSliceCount: 3, ComputeInstanceSliceCount: 1, MemorySizeMB: 19968}, a100},
		"":           {nvml.DeviceAttributes{}, a100},
	} {
		if got := migProfile(tc.a, tc.total); got != want {
			t.Errorf("%+v = %q, want %q", tc.a, got, want)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	w := &watched{parts: []partition{{1, 0, "a"}, {2, 0, "b"}, {2, 1, "c"}}}
	for _, tc := range []struct {
		gi, ci uint32
		want   string
	}{{1, 0, "a"}, {1, noInstance, "a"}, {2, 1, "c"}, {2, noInstance, ""}, {noInstance, noInstance, ""}, {9, 0, ""}} {
		if got := w.partitionOf(tc.gi, tc.ci); got != tc.want {
			t.Errorf("%d/%d = %q, want %q", tc.gi, tc.ci, got, tc.want)
		}
	}
}

func TestKernelVersion(t *testing.T) {
	for line, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12": "550.54.15",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build":                       "580.105.08",
		"": "unknown",
	} {
		if got := parseKernelVersion([]byte(line)); got != want {
			t.Errorf("%q = %q, want %q", line, got, want)
		}
	}
}
