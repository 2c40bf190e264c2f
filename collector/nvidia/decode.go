//go:build linux && cgo

package nvidia

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// cString returns the text of a C array up to its NUL.
func cString(b []int8) string {
	var s strings.Builder
	for _, c := range b {
		if c == 0 {
			break
		}
		s.WriteByte(byte(c))
	}
	return s.String()
}

// text makes a driver string fit for a label: valid UTF-8, trimmed, and empty
// where the driver means "none".
func text(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, ""))
	switch s {
	case "N/A", "[N/A]", "Unknown", "Unknown Error", "ERR!":
		return ""
	}
	return s
}

// pciAddress formats an address as the kernel does. A GPU is always function 0.
func pciAddress(p nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
}

// uuidOf formats 16 bytes in the usual groups.
func uuidOf(b [16]uint8) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// fieldNumber decodes an nvmlValue_t of type nvmlValueType_t. All fields read
// here are integers; signed allows a negative one. reason is empty, or why the
// value is rejected.
func fieldNumber(valueType uint32, raw [8]byte, signed bool) (v float64, reason string) {
	bits := binary.NativeEndian.Uint64(raw[:])
	bits32 := binary.NativeEndian.Uint32(raw[:])
	kind := nvml.ValueType(valueType)
	if kind == nvml.VALUE_TYPE_DOUBLE {
		if v := math.Float64frombits(bits); v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return v, ""
		}
		// Some drivers (R545) declare the integer of field 82 as a double. Read as
		// one, it is too small for a reading.
		if bits == uint64(bits32) {
			kind = nvml.VALUE_TYPE_UNSIGNED_INT
		}
	}
	switch kind {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		if signed {
			// Some drivers use this type for signed fields.
			return signedNumber(int64(int32(bits32)), math.MinInt32)
		}
		return unsigned(uint64(bits32), math.MaxUint32)
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		if signed {
			return signedNumber(int64(bits), math.MinInt64)
		}
		return unsigned(bits, math.MaxUint64)
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return unsigned(uint64(binary.NativeEndian.Uint16(raw[:])), math.MaxUint16)
	case nvml.VALUE_TYPE_SIGNED_INT:
		if !signed && int32(bits32) == -1 {
			return 0, collector.RejectSentinel
		}
		return signedNumber(int64(int32(bits32)), math.MinInt32)
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		if !signed && int64(bits) == -1 {
			return 0, collector.RejectSentinel
		}
		return signedNumber(int64(bits), math.MinInt64)
	}
	return 0, collector.RejectType
}

// blank64 is the lowest of DCGM's 64-bit "no value" marks, which some layers
// below NVML pass on. No counter reaches it.
const blank64 = 0x7ffffffffffffff0

// unsigned returns v, unless it is NVML_VALUE_NOT_AVAILABLE (-1 in its width).
func unsigned(v, notAvailable uint64) (float64, string) {
	if v == notAvailable || v >= blank64 && v <= math.MaxInt64 {
		return 0, collector.RejectSentinel
	}
	return float64(v), ""
}

func signedNumber(v, notAvailable int64) (float64, string) {
	if v == notAvailable || v >= blank64 {
		return 0, collector.RejectSentinel
	}
	return float64(v), ""
}

// faultBit decodes one part of the healthMask of nvmlGpuFabricInfo: 1 is true,
// 2 is false, anything else is unknown.
func faultBit(mask uint32, shift uint) (fault, known bool) {
	v := mask >> shift & 3
	return v == nvml.GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE, v == 1 || v == 2
}

// misconfigured decodes the 4-bit part of the healthMask: 1 is none, a larger
// value is the kind of fault.
func misconfigured(mask uint32) (fault, known bool) {
	v := mask >> nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION & nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION
	return v > nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE, v != nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NOT_SUPPORTED
}

// migProfile returns the profile name of a MIG device in NVIDIA's form:
// 1g.10gb, or 1c.3g.40gb where it has a part of its GPU instance's compute
// slices.
func migProfile(a nvml.DeviceAttributes, totalBytes uint64) string {
	if a.GpuInstanceSliceCount == 0 || totalBytes == 0 {
		return ""
	}
	const gib = 1 << 30
	// The profile name is in eighths of the board's memory, not in bytes.
	eighths := math.Ceil(float64(a.MemorySizeMB<<20) / float64(totalBytes) * 8)
	gb := math.Round(eighths / 8 * float64((totalBytes+gib-1)/gib))
	s := strconv.Itoa(int(a.GpuInstanceSliceCount)) + "g." + strconv.Itoa(int(gb)) + "gb"
	if a.ComputeInstanceSliceCount != a.GpuInstanceSliceCount {
		s = strconv.Itoa(int(a.ComputeInstanceSliceCount)) + "c." + s
	}
	return s
}

// unit converts a driver's number to the metric's unit. Dividing by an integer
// rounds to the expected decimal number; multiplying by its inverse does not.
type unit struct{ by, over float64 }

var (
	one      = unit{1, 1}
	percent  = unit{1, 100}
	milli    = unit{1, 1e3}
	nano     = unit{1, 1e9}
	mega     = unit{1e6, 1}
	kibibyte = unit{1 << 10, 1}
	mebibyte = unit{1 << 20, 1}
)

func (u unit) of(v float64) float64 { return v * u.by / u.over }

// set32 sets a 32-bit value, unless it is the "not available" mark.
func set32(d *collector.Device, m *collector.Metric, v uint32, u unit, labels ...string) {
	if v == math.MaxUint32 {
		d.Reject(m, collector.RejectSentinel)
		return
	}
	d.Set(m, u.of(float64(v)), labels...)
}

// set64 is set32 for 64 bits.
func set64(d *collector.Device, m *collector.Metric, v uint64, u unit, labels ...string) {
	f, reason := unsigned(v, math.MaxUint64)
	if reason != "" {
		d.Reject(m, reason)
		return
	}
	d.Set(m, u.of(f), labels...)
}

// recordSeverities are the severities of a CPER (UEFI specification, appendix N).
var recordSeverities = []string{collector.SubRecoverable, collector.SubFatal, collector.SubCorrected, collector.SubInformational}

// recordSeverity returns the severity in the header of a CPER.
func recordSeverity(record []byte) string {
	const offset = 12
	if len(record) < offset+4 || string(record[:4]) != "CPER" {
		return collector.SubOther
	}
	if n := binary.LittleEndian.Uint32(record[offset:]); n < uint32(len(recordSeverities)) {
		return recordSeverities[n]
	}
	return collector.SubOther
}
