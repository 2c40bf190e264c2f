package amd

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// quantity is a field of gpu_metrics that the Source uses.
type quantity uint8

const (
	edge quantity = iota
	hotspot
	memory
	regulator
	power
	gfxActivity
	memActivity
	mmActivity
	vcnActivity
	jpegActivity
	energy
	accumulation
	prochot
	ppt
	socketThermal
	vrThermal
	hbmThermal
	linkWidth
	linkSpeed
	toRecovery
	replays
	rollovers
	naksSent
	naksReceived
	xgmiRead
	xgmiWrite
	xgmiStatus
	gfxClock
	memClock
	videoClock
	fan
	partitions
	soc
	quantities
)

// absent is the value of a field whose bits are all ones: the card does not have it.
const absent = ^uint64(0)

// versions are the versions with fixed offsets, and sizes their structure_size, from
// struct gpu_metrics_v* in the kernel's include/kgd_pp_interface.h. Versions from 2.1 on are of
// processors with graphics.
var (
	versions = [...]string{"1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "2.1", "2.2", "2.3", "2.4", "3.0"}
	sizes    = offsets{120, 288, 360, 1664, 2208, 3872, 120, 128, 152, 168, 264}
)

// offsets are bytes by version.
type offsets [len(versions)]int

// fields has a row for each quantity: width in bytes, instances, and the offset in
// each of versions; 0 where a version does not have it. The fields of a processor whose unit
// depends on the processor are left out, as the power is in vangogh_ppt.c and
// yellow_carp_ppt.c: hwmon has it in one unit.
var fields = [quantities]struct {
	width, count int
	at           offsets
}{
	edge:          {2, 1, offsets{4}},
	hotspot:       {2, 1, offsets{6, 4, 4, 4, 4, 4}},
	memory:        {2, 1, offsets{8, 6, 6, 6, 6, 6}},
	regulator:     {2, 1, offsets{12, 8, 8, 8, 8, 8}},
	power:         {2, 1, offsets{22, 10, 10, 10, 10, 10}},
	gfxActivity:   {2, 1, offsets{16, 12, 12, 12, 12, 12}},
	memActivity:   {2, 1, offsets{18, 14, 14, 14, 14, 14}},
	mmActivity:    {2, 1, offsets{20}},
	vcnActivity:   {2, 4, offsets{0, 16, 16}},
	jpegActivity:  {2, 32, offsets{0, 0, 24}},
	energy:        {8, 1, offsets{24, 24, 88, 16, 24, 24}},
	accumulation:  {4, 1, offsets{0, 0, 0, 32, 40, 40}},
	prochot:       {4, 1, offsets{0, 0, 0, 36, 44, 44}},
	ppt:           {4, 1, offsets{0, 0, 0, 40, 48, 48}},
	socketThermal: {4, 1, offsets{0, 0, 0, 44, 52, 52}},
	vrThermal:     {4, 1, offsets{0, 0, 0, 48, 56, 56}},
	hbmThermal:    {4, 1, offsets{0, 0, 0, 52, 60, 60}},
	linkWidth:     {2, 1, offsets{74, 48, 112, 60, 68, 68}},
	linkSpeed:     {2, 1, offsets{76, 50, 114, 62, 70, 70}},
	toRecovery:    {8, 1, offsets{0, 80, 144, 96, 104, 104}},
	replays:       {8, 1, offsets{0, 88, 152, 104, 112, 112}},
	rollovers:     {8, 1, offsets{0, 96, 160, 112, 120, 120}},
	naksSent:      {4, 1, offsets{0, 0, 168, 120, 128, 128}},
	naksReceived:  {4, 1, offsets{0, 0, 172, 124, 132, 132}},
	xgmiRead:      {8, 8, offsets{0, 104, 176, 128, 136, 136}},
	xgmiWrite:     {8, 8, offsets{0, 168, 240, 192, 200, 200}},
	xgmiStatus:    {2, 8, offsets{0, 0, 0, 0, 264, 264}},
	gfxClock:      {2, 8, offsets{54, 240, 312, 264, 296, 296}},
	memClock:      {2, 1, offsets{58, 280, 352, 304, 336, 336, 80, 80, 80, 80, 186}},
	videoClock:    {2, 4, offsets{60, 264, 336, 288, 320, 320, 84, 84, 84, 84, 184}},
	fan:           {2, 1, offsets{72}},
	partitions:    {2, 1, offsets{0, 0, 0, 306, 338, 338}},
	soc:           {2, 1, offsets{6: 6, 7: 6, 8: 6, 9: 6, 10: 6}}, // hundredths of a degree
}

// partStart and partSize locate the eight xcp_stats of a version. gfx_busy_inst
// [8]u32 is at their start, vcn_busy [4]u16 at partVCN.
var (
	partStart = offsets{0, 0, 0, 312, 344, 344}
	partSize  = offsets{0, 0, 0, 168, 232, 440}
	partVCN   = offsets{0, 0, 0, 96, 96, 112}
)

// ids are the quantities by the attribute id of version 1.9, which describes its
// own fields. Ids that are not here are skipped.
var ids = map[uint64]quantity{
	0: hotspot, 1: memory, 2: regulator, 3: power, 4: gfxActivity, 5: memActivity, 7: energy, 9: accumulation,
	10: prochot, 11: ppt, 12: socketThermal, 13: vrThermal, 14: hbmThermal, 16: linkWidth, 17: linkSpeed,
	24: toRecovery, 25: replays, 26: rollovers, 27: naksSent, 28: naksReceived, 29: xgmiRead, 30: xgmiWrite,
	31: xgmiStatus, 33: gfxClock, 35: videoClock, 37: memClock, 38: partitions,
}

// table is a decoded gpu_metrics.
type table struct {
	version string
	// processor: it is of a processor with graphics, and lacks what hwmon has.
	processor bool
	values    [quantities][]uint64 // by instance; nil where the version has none
	parts     []part
}

// part is a partition's share of the table.
type part struct{ gfx, vcn []uint64 }

// errVersion: the table is of a version whose layout is not known.
var errVersion = errors.New("unknown version of gpu_metrics")

// decode decodes the attribute gpu_metrics. A tail after the structure is ignored.
func decode(b []byte) (*table, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("gpu_metrics of %d bytes", len(b))
	}
	size := int(binary.LittleEndian.Uint16(b))
	t := &table{version: fmt.Sprintf("%d.%d", b[2], b[3]), processor: b[2] > 1}
	if t.version == "1.9" {
		if size < 8 || size > len(b) {
			size = len(b)
		}
		return t, t.selfDescribed(b[4:size])
	}
	for i, v := range versions {
		if v != t.version {
			continue
		}
		if size != sizes[i] || len(b) < size {
			return nil, fmt.Errorf("gpu_metrics %s of %d bytes, %d were read", v, size, len(b))
		}
		for q := range fields {
			f := &fields[q]
			count := f.count
			if i == 0 || t.processor {
				count = 1 // these have one of each
			}
			if at := f.at[i]; at > 0 {
				t.values[q] = numbers(b[at:], f.width, count)
			}
		}
		for k := range 8 {
			if at := partStart[i] + k*partSize[i]; partSize[i] > 0 {
				t.parts = append(t.parts, part{numbers(b[at:], 4, 8), numbers(b[at+partVCN[i]:], 2, 4)})
			}
		}
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s", errVersion, t.version)
}

// selfDescribed decodes version 1.9: a number of attributes, each an encoding and
// its values without padding.
func (t *table) selfDescribed(b []byte) error {
	errShort := errors.New("gpu_metrics 1.9 ends within an attribute")
	if len(b) < 4 {
		return errShort
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	for range n {
		if len(b) < 8 {
			return errShort
		}
		encoding := binary.LittleEndian.Uint64(b)
		b = b[8:]
		kind, count := encoding>>20&0xf, int(encoding&0x3ff)
		if kind > 7 {
			return fmt.Errorf("gpu_metrics 1.9 has a value of the unknown type %d", kind)
		}
		width := 1 << (kind / 2)
		if len(b) < width*count {
			return errShort
		}
		if q, ok := ids[encoding>>10&0x3ff]; ok && count > 0 && kind%2 == 0 {
			t.values[q] = numbers(b, width, min(count, fields[q].count))
		}
		b = b[width*count:]
	}
	return nil
}

// numbers decodes count little-endian numbers; all ones are absent.
func numbers(b []byte, width, count int) []uint64 {
	out := make([]uint64, count)
	for i := range out {
		var v [8]byte
		copy(v[:], b[i*width:(i+1)*width])
		out[i] = binary.LittleEndian.Uint64(v[:])
		if out[i] == absent>>(64-8*width) {
			out[i] = absent
		}
	}
	return out
}

// get returns the first instance of a quantity.
func (t *table) get(q quantity) (float64, bool) { return first(t.values[q]) }

func first(v []uint64) (float64, bool) {
	if len(v) == 0 || v[0] == absent {
		return 0, false
	}
	return float64(v[0]), true
}

// mean and highest are over the instances that are not absent.
func mean(v []uint64) (sum float64, ok bool) {
	n := 0
	for _, x := range v {
		if x != absent {
			sum, n = sum+float64(x), n+1
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

func highest(v []uint64) (most float64, ok bool) {
	for _, x := range v {
		if x != absent {
			most, ok = max(most, float64(x)), true
		}
	}
	return most, ok
}
