//go:build linux && cgo

package nvidia

import (
	"math"
	"slices"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var callFieldValues = function("nvmlDeviceGetFieldValues")

// field is one entry of nvmlDeviceGetFieldValues.
type field struct {
	// id is that of nvml.h; numbering has the driver's.
	id uint32
	// scope is the field's scopeId: the link number for fields of one link.
	scope  uint32
	signed bool
	metric *collector.Metric
	labels []string
	unit   unit
	// use handles a value that is not a reading by itself.
	use func(g *gpu, d *collector.Device, v float64)
}

// lastField is larger than every id in the header.
const lastField = 512

// maxFields is the number of fields of one call. Drivers may refuse a call with
// NVML_FI_MAX entries or more.
const maxFields = 128

// unwritten is the return code of a value that the library has not written.
const unwritten = math.MaxUint32

// fieldNames are the values of the label call for failing fields.
var fieldNames = func() (names [lastField]string) {
	for i := range names {
		names[i] = "field_" + strconv.Itoa(i)
	}
	return names
}()

// batch is a set of fields read together. Fields that the GPU does not
// support are not read again.
type batch struct {
	ids    numbering
	fields []field
	values []nvml.FieldValue
	// waiting are the fields that the driver refuses, until they are due again.
	waiting []field
	// off: the call as a whole is refused, so each field needs another one.
	off bool
}

// newBatch is for fields that every release knows by the same id.
func newBatch(fields []field) *batch { return numbering580.batch(fields) }

func (n numbering) batch(fields []field) *batch {
	b := &batch{ids: n}
	b.add(fields...)
	return b
}

// add leaves out the fields that have no id in the batch's numbering.
func (b *batch) add(fields ...field) {
	for _, f := range fields {
		if id, ok := b.ids.id(f.id); ok {
			b.fields, b.values = append(b.fields, f), append(b.values, nvml.FieldValue{FieldId: id, ScopeId: f.scope})
		}
	}
}

// read reads all fields into d. refused, which may be nil, is called for each
// field that the GPU will never support.
func (b *batch) read(g *gpu, d *collector.Device, refused func(f field)) {
	g.readBatches(refused, reading{b, d})
}

// reading is a batch and the device that gets its values.
type reading struct {
	*batch
	device *collector.Device
}

// readBatches reads several batches, by one call unless their fields are too many.
func (g *gpu) readBatches(refused func(f field), list ...reading) {
	g.values = g.values[:0]
	for _, b := range list {
		b.prepare(g)
		g.values = append(g.values, b.values...)
	}
	rest, answered := g.values, false
	for _, b := range list {
		kept := 0
		for i := range b.values {
			if at := len(g.values) - len(rest); at%maxFields == 0 {
				answered = g.fieldValues(rest[:min(maxFields, len(rest))])
			}
			b.values[i], rest = rest[0], rest[1:]
			if !answered || b.take(g, b.device, i, refused) {
				b.fields[kept], b.values[kept] = b.fields[i], b.values[i]
				kept++
			}
		}
		b.off = g.refused[callFieldValues.index]
		if kept < len(b.fields) {
			b.fields, b.values = slices.Clone(b.fields[:kept]), slices.Clone(b.values[:kept])
		}
	}
}

// prepare adds the refused fields that are due again. A value that the library does not
// write must not be the previous round's.
func (b *batch) prepare(g *gpu) {
	if len(b.waiting) > 0 {
		b.waiting = slices.DeleteFunc(b.waiting, func(f field) bool {
			due := !g.waits(f.asked())
			if due {
				b.add(f)
			}
			return due
		})
	}
	for i := range b.values {
		b.values[i].NvmlReturn, b.values[i].LatencyUsec = unwritten, -1
	}
}

// fieldValues reads values by one call. It may refuse a field and leave others
// unwritten, and return success: R580 does so for the limits of power and temperature
// where a GPU has no C2C links. A second call without the answered fields has them.
func (g *gpu) fieldValues(values []nvml.FieldValue) bool {
	get := func(v []nvml.FieldValue) bool {
		return do(&g.asker, callFieldValues, func() nvml.Return { return g.handle.GetFieldValues(v) })
	}
	if !get(values) {
		return false
	}
	var rest []nvml.FieldValue
	for _, v := range values {
		if v.NvmlReturn == unwritten {
			rest = append(rest, v)
		}
	}
	if len(rest) > 0 && len(rest) < len(values) {
		get(rest)
	}
	for i := range values {
		if v := &values[i]; v.NvmlReturn == unwritten {
			*v, rest = rest[0], rest[1:]
			if v.NvmlReturn == unwritten {
				v.NvmlReturn = uint32(nvml.ERROR_UNKNOWN)
			}
		}
	}
	return true
}

// take delivers the answer of a field. It reports whether to read it again.
func (b *batch) take(g *gpu, d *collector.Device, i int, refused func(f field)) bool {
	v, f := &b.values[i], &b.fields[i]
	name := fieldNames[f.id]
	if f.metric == collector.PowerScope {
		name += "_scope_" + strconv.Itoa(int(f.scope))
	}
	ret := nvml.Return(v.NvmlReturn)
	if ret == nvml.SUCCESS {
		f.deliver(g, d, v)
		if len(g.refusals) > 0 {
			delete(g.refusals, f.asked())
		}
		return true
	}
	if g.refuse(f.asked(), name, ret) {
		b.waiting = append(b.waiting, *f)
		return false
	}
	if !permanent(ret) && ret != nvml.ERROR_INVALID_ARGUMENT {
		g.missed(name, ret)
		return true
	}
	// An older driver does not know the field. The round is whole without it.
	g.count(name, ret)
	if refused != nil {
		refused(*f)
	}
	return false
}

func (f *field) deliver(g *gpu, d *collector.Device, v *nvml.FieldValue) {
	n, reason := fieldNumber(v.ValueType, v.Value, f.signed)
	switch {
	case reason != "":
		d.Reject(f.metric, reason)
	case f.use != nil:
		f.use(g, d, n)
	default:
		d.Set(f.metric, f.unit.of(n), f.labels...)
	}
}

// asked identifies the field among the calls of its device.
func (f *field) asked() asked { return asked{callFieldValues, f.id, f.scope} }

// has reports whether the field id is read of the GPU or of any link.
func (b *batch) has(id uint32) bool {
	if b.off {
		return false
	}
	for i := range b.fields {
		if b.fields[i].id == id && b.fields[i].metric != collector.PowerScope {
			return true
		}
	}
	return false
}
