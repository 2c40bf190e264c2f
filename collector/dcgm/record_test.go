package dcgm

import (
	"encoding/binary"
	"math"
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

func words(s string) *record {
	r := &record{kind: typeString}
	copy(r.value[:], s)
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
		"text":               {words("12"), 0, rejected(collector.RejectType)},
		"no type":            {&record{}, 0, rejected(collector.RejectType)},
		"status":             {lost, 0, verdict{code: gpuLost}},
	} {
		if v, why := c.record.number(); v != c.value || why != c.want {
			t.Errorf("%s: %v, %+v, want %v, %+v", name, v, why, c.value, c.want)
		}
	}
}

func TestText(t *testing.T) {
	sentinel := rejected(collector.RejectSentinel)
	for text, want := range map[string]verdict{
		"NVIDIA A100":         isValue,
		"<<<NULL>>>":          sentinel,
		"<<<NOT_FOUND>>>":     sentinel,
		"<<<NOT_PERM>>>":      sentinel,
		"<<<NOT_SUPPORTED>>>": lacks,
		"<<<ANYTHING>>>":      sentinel,
		"<<< not one":         isValue,
		"":                    {code: noData},
		"  ":                  {code: noData},
		"a\nb":                rejected(collector.RejectType),
		"\xff":                rejected(collector.RejectType),
	} {
		if _, why := words(text).text(); why != want {
			t.Errorf("%q: %+v, want %+v", text, why, want)
		}
	}
	if _, why := integer(3).text(); why.reject != collector.RejectType {
		t.Errorf("a number is a text: %+v", why)
	}
}

// For any memory of the library, a value is a number within range or a text fit
// for a label.
func FuzzRecord(f *testing.F) {
	f.Add(uint16(typeInt64), int32(0), uint64(0x7ffffff0), "")
	f.Add(uint16(typeDouble), int32(-18), math.Float64bits(140737488355328), "")
	f.Add(uint16(typeString), int32(0), uint64(0), "<<<NOT_PERM>>>")
	f.Fuzz(func(t *testing.T, kind uint16, status int32, bits uint64, s string) {
		r := &record{kind: kind, status: status}
		binary.LittleEndian.PutUint64(r.value[:], bits)
		if v, why := r.number(); why == isValue && (math.IsNaN(v) || math.IsInf(v, 0) || v >= blankInt64) {
			t.Errorf("%v passes for a value", v)
		}
		copy(r.value[:], s)
		if text, why := r.text(); why == isValue && (text == "" || len(text) > maxText) {
			t.Errorf("%q passes for a text", text)
		}
	})
}

func TestPCIAddress(t *testing.T) {
	for text, want := range map[string]string{
		"00000000:1B:00.0": "0000:1b:00.0",
		"0001:01:00.0":     "0001:01:00.0",
		"10000:01:1f.7":    "10000:01:1f.7",
		"0000:1b:20.0":     "",
		"0000:1b:00.8":     "",
		"1b:00.0":          "",
		"":                 "",
		"x:y:z.w":          "",
	} {
		if got := pciAddress(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
