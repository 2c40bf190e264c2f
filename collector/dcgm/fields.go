package dcgm

import (
	"slices"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
)

// asked is a configured field.
type asked struct {
	dcgmfield.Field
	metric *collector.Metric
	// labels are the label values by part of the device, made once.
	labels map[string][]string
}

// fieldFamilies are the families of the kinds of fields; a structure has none.
var fieldFamilies = map[dcgmfield.Kind]*collector.Metric{
	dcgmfield.Counter: collector.DCGMFieldTotal, dcgmfield.Gauge: collector.DCGMField, dcgmfield.Info: collector.DCGMFieldInfo,
}

// ask looks up fields. Fields that cannot be read are counted in calls: unknown ones,
// structures, and fields of vGPUs and ConnectX cards.
func ask(ids []uint16, calls *tally) map[uint16]*asked {
	fields := map[uint16]*asked{}
	for _, id := range ids {
		f, known := dcgmfield.ByID(id)
		family := fieldFamilies[f.Kind]
		switch {
		case !known:
			calls.count(callOf(id), unknownField)
		case family == nil || len(groupsOf(f.Entity)) == 0:
			calls.count(callOf(id), fieldUnsupported)
		default:
			fields[id] = &asked{Field: f, metric: family, labels: map[string][]string{}}
		}
	}
	return fields
}

// callOf is the value of the label call of a field.
func callOf(field uint16) string {
	if f, known := dcgmfield.ByID(field); known {
		return f.Name
	}
	return "DCGM_FI_" + strconv.Itoa(int(field))
}

// groupsOf returns the kinds of entities that a field is read of. A field of a
// whole GPU is not read of its MIG instances, which would return the GPU's
// value.
func groupsOf(e dcgmfield.Entity) []group {
	switch e {
	case dcgmfield.Node, dcgmfield.GPU:
		return []group{gpus}
	case dcgmfield.GPUInstance, dcgmfield.ComputeInstance:
		return []group{gpus, instances}
	case dcgmfield.Switch:
		return []group{switches}
	case dcgmfield.Link:
		return []group{links}
	case dcgmfield.CPU:
		return []group{cpus}
	case dcgmfield.CPUCore:
		return []group{cpus, cores}
	}
	return nil
}

// of returns the ids of the fields that are read of entities of g, sorted.
func of(fields map[uint16]*asked, g group) []uint16 {
	var ids []uint16
	for id, f := range fields {
		if f.reads(g) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// take adds a value of the field to the round of d.
func (f *asked) take(d *device, r *record) verdict {
	if f.Kind == dcgmfield.Info {
		return f.takeText(d, r)
	}
	v, why := r.number()
	if why == isValue {
		part := r.entity().part()
		labels, made := f.labels[part]
		if !made {
			labels = []string{f.Name, part, f.Unit}
			f.labels[part] = labels
		}
		d.now.Set(f.metric, v, labels...)
	}
	return why
}

// takeText adds a text. Texts of parts have no family: accel_dcgm_field_info
// describes devices.
func (f *asked) takeText(d *device, r *record) verdict {
	text, why := r.text()
	if why == isValue && r.entity().part() == "" {
		d.now.Set(f.metric, 1, f.Name, text)
	}
	return why
}

// reads reports whether the field is read of entities of g.
func (f *asked) reads(g group) bool { return slices.Contains(groupsOf(f.Entity), g) }
