package dcgm

import (
	"encoding/binary"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

func integer(v int64) *record {
	r := &record{kind: typeInt64}
	binary.LittleEndian.PutUint64(r.value[:], uint64(v))
	return r
}

func double(v float64) *record {
	r := &record{kind: typeDouble}
	binary.LittleEndian.PutUint64(r.value[:], math.Float64bits(v))
	return r
}

// DCGM's marks for "no value" are rejected, by range and not by a list.
func TestNumber(t *testing.T) {
	sentinel, impossible := rejected(collector.RejectSentinel), rejected(collector.RejectRange)
	lost := integer(3)
	lost.status = int32(gpuLost)
	for name, c := range map[string]struct {
		record *record
		value  float64
		want   verdict
	}{
		"zero":               {integer(0), 0, isValue},
		"negative":           {integer(-5), -5, isValue},
		"beyond 32 bits":     {integer(1 << 40), 1 << 40, isValue},
		"just below a mark":  {integer(math.MaxInt64 - 16), math.MaxInt64 - 16, isValue},
		"blank":              {integer(0x7ffffffffffffff0), 0, sentinel},
		"not found":          {integer(0x7ffffffffffffff1), 0, sentinel},
		"not supported":      {integer(0x7ffffffffffffff2), 0, lacks},
		"not permitted":      {integer(0x7ffffffffffffff3), 0, sentinel},
		"a mark to come":     {integer(0x7ffffffffffffff9), 0, sentinel},
		"largest":            {integer(math.MaxInt64), 0, sentinel},
		"blank of 32 bits":   {integer(0x7ffffff0), 0, sentinel},
		"lacking in 32 bits": {integer(0x7ffffff2), 0, lacks},
		"after those":        {integer(0x7ffffff4), 0x7ffffff4, isValue},
		"double":             {double(0.25), 0.25, isValue},
		"double blank":       {double(140737488355328), 0, sentinel},
		"double lacking":     {double(140737488355330), 0, lacks},
		"double beyond":      {double(1e300), 0, sentinel},
		"NaN":                {double(math.NaN()), 0, impossible},
		"infinite":           {double(math.Inf(1)), 0, impossible},
		"minus infinite":     {double(math.Inf(-1)), 0, impossible},
		"text":               {&record{kind: typeString}, 0, rejected(collector.RejectType)},
		"no type":            {&record{}, 0, rejected(collector.RejectType)},
		"status":             {lost, 0, verdict{code: gpuLost}},
	} {
		if v, why := c.record.number(); v != c.value || why != c.want {
			t.Errorf("%s: %v, %+v, want %v, %+v", name, v, why, c.value, c.want)
		}
	}
}

// fit matches what can be a label value.
var fit = regexp.MustCompile(`^[^\x00-\x1f\x7f\x{FFFD}]+$`)

// For any memory of the library, a value is a number within range or a text fit
// for a label.
func FuzzRecord(f *testing.F) {
	f.Add(uint16(typeInt64), int32(0), uint64(0x7ffffff0), "")
	f.Add(uint16(typeDouble), int32(-18), math.Float64bits(140737488355328), "")
	for _, text := range []string{"NVIDIA A100", "<<<NOT_PERM>>>", "<<<NOT_SUPPORTED>>>\x00", "<<<ANYTHING>>>", "  ", "a\nb", "\xff"} {
		f.Add(uint16(typeString), int32(0), uint64(0), text)
	}
	f.Fuzz(func(t *testing.T, kind uint16, status int32, bits uint64, s string) {
		r := &record{kind: kind, status: status}
		binary.LittleEndian.PutUint64(r.value[:], bits)
		if v, why := r.number(); why == isValue && (math.IsNaN(v) || math.IsInf(v, 0) || v >= blankInt64) {
			t.Errorf("%v passes for a value", v)
		}
		copy(r.value[:], s)
		text, why := r.text()
		if r.kind == typeString && r.status == 0 && strings.HasPrefix(s, "<<<NOT_SUPPORTED>>>\x00") && why != lacks {
			t.Errorf("%q: %+v", s, why)
		}
		if why == isValue && (!fit.MatchString(text) || len(text) > maxText || strings.HasPrefix(text, "<<<") && strings.Contains(text, ">>>")) {
			t.Errorf("%q passes for a text", text)
		}
	})
}
