package dcgm

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Types of values, DCGM_FT_*.
const (
	typeInt64     = 'i'
	typeDouble    = 'd'
	typeString    = 's'
	typeTimestamp = 't'
)

// maxText bounds a text; DCGM's have at most 255 bytes.
const maxText = 256

// record is a dcgmFieldValue_v2 as filled in by the library.
type record struct {
	version uint32
	group   uint32
	id      uint32
	field   uint16
	kind    uint16
	status  int32
	_       uint32
	// ts is when the host engine read the value, in µs since the epoch.
	ts    int64
	value [4096]byte
}

func (r *record) entity() entity { return entity{group(r.group), r.id} }

// bits is the union, in the byte order of every machine that DCGM runs on.
func (r *record) bits() uint64 { return binary.LittleEndian.Uint64(r.value[:]) }

// Marks for "no value", DCGM_*_BLANK: every number from these up.
const (
	blankInt64  = math.MaxInt64 - 15 // 0x7ffffffffffffff0
	blankInt32  = math.MaxInt32 - 15 // 0x7ffffff0
	blankDouble = 1 << 47
	// marks is the number of kinds of blank: none, not found, not supported,
	// not permitted.
	marks            = 4
	markNotSupported = 2
)

// verdict is the interpretation of a record.
type verdict struct {
	// code is ok for a value; else the reason for its absence.
	code code
	// reject is a collector.Reject constant where the record contains no valid
	// value, or empty.
	reject string
}

var (
	isValue = verdict{}
	lacks   = verdict{code: notSupported}
)

func rejected(reason string) verdict { return verdict{code: noData, reject: reason} }

// blank interprets a mark by its distance from the first.
func blank(mark int) verdict {
	if mark == markNotSupported {
		return lacks
	}
	return rejected(collector.RejectSentinel)
}

// number returns the value of a record of a numeric type.
func (r *record) number() (float64, verdict) {
	if code(r.status) != ok {
		return 0, verdict{code: code(r.status)}
	}
	switch r.kind {
	case typeInt64, typeTimestamp:
		v := int64(r.bits())
		switch {
		case v >= blankInt64:
			return 0, blank(int(min(v-blankInt64, marks)))
		case v >= blankInt32 && v < blankInt32+marks:
			// Some values are converted from 32 bits, with the marks of 32
			// bits.
			return 0, blank(int(v - blankInt32))
		}
		return float64(v), isValue
	case typeDouble:
		v := math.Float64frombits(r.bits())
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return 0, rejected(collector.RejectRange)
		case v >= blankDouble:
			return 0, blank(int(min(v-blankDouble, marks)))
		}
		return v, isValue
	}
	return 0, rejected(collector.RejectType)
}

// text returns the value of a record of type string.
func (r *record) text() (string, verdict) {
	if code(r.status) != ok {
		return "", verdict{code: code(r.status)}
	}
	if r.kind != typeString {
		return "", rejected(collector.RejectType)
	}
	b := r.value[:maxText]
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	s := strings.TrimSpace(string(b))
	switch {
	case s == "":
		return "", verdict{code: noData}
	case strings.HasPrefix(s, "<<<") && strings.Contains(s, ">>>"):
		if strings.Contains(s, "NOT_SUPPORTED") {
			return "", lacks
		}
		return "", rejected(collector.RejectSentinel)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "", rejected(collector.RejectType)
	}
	return s, isValue
}
