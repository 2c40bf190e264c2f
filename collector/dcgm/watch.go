//go:build linux && cgo

package dcgm

import (
	"strconv"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

const (
	maxFieldsOfGroup = 128 // DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP
	// maxWatches is the most groups of each kind that the exporter uses of the
	// host engine's 64: other clients need some too.
	maxWatches = 24
)

// watch is a set of fields that the host engine updates for a set of entities.
type watch struct {
	entities []entity
	fields   []uint16
	group    dcgm.GroupHandle
	set      dcgm.FieldHandle
}

// shorts converts ids to go-dcgm's type.
func shorts(fields []uint16) []dcgm.Short {
	list := make([]dcgm.Short, len(fields))
	for i, f := range fields {
		list[i] = dcgm.Short(f)
	}
	return list
}

// makeGroup makes a group of the entities that the host engine accepts.
func (e *engine) makeGroup(entities []entity) (dcgm.GroupHandle, []entity, code) {
	g, err := dcgm.CreateGroup("accel-exporter")
	if c := e.lib.code(err); !e.calls.count("dcgmGroupCreate", c) {
		return g, nil, c
	}
	var taken []entity
	last := ok
	for _, x := range entities {
		err := dcgm.AddEntityToGroup(g, dcgm.Field_Entity_Group(x.group), uint(x.id))
		if c := e.lib.code(err); e.calls.count("dcgmGroupAddEntity", c) {
			taken = append(taken, x)
		} else {
			last = c
		}
	}
	if len(taken) == 0 {
		e.destroyGroup(g)
		return g, nil, last
	}
	return g, taken, ok
}

func (e *engine) destroyGroup(g dcgm.GroupHandle) {
	e.calls.count("dcgmGroupDestroy", e.lib.code(dcgm.DestroyGroup(g)))
}

// arm makes the host engine update fields of entities and keep the latest
// values. On failure it leaves nothing behind.
func (e *engine) arm(entities []entity, fields []uint16, interval time.Duration) (*watch, code) {
	if len(entities) == 0 || len(fields) == 0 {
		return nil, badParam
	}
	w := &watch{fields: fields}
	var c code
	if w.group, w.entities, c = e.makeGroup(entities); c != ok {
		return nil, c
	}
	var err error
	w.set, err = dcgm.FieldGroupCreate("accel-exporter-"+strconv.FormatUint(uint64(w.group.GetHandle()), 10), shorts(fields))
	c = e.lib.code(err)
	if c == badParam && len(fields) == 1 {
		c = unknownField // of this version of DCGM
	}
	if !e.calls.count("dcgmFieldGroupCreate", c) {
		e.destroyGroup(w.group)
		return nil, c
	}
	err = dcgm.WatchFieldsWithGroupEx(w.set, w.group, interval.Microseconds(), e.options.keepAge().Seconds(), keepSamples)
	if c := e.lib.code(err); !e.calls.count("dcgmWatchFields", c) {
		e.disarm(w)
		return nil, c
	}
	return w, ok
}

// disarm ends a watch and destroys its groups.
func (e *engine) disarm(w *watch) {
	if w == nil {
		return
	}
	// A refused watch does not exist.
	_ = dcgm.UnwatchFields(w.set, w.group)
	e.calls.count("dcgmFieldGroupDestroy", e.lib.code(dcgm.FieldGroupDestroy(w.set)))
	e.destroyGroup(w.group)
}

// armMost is arm where the host engine may refuse some fields. It finds them by
// bisection and passes them to refused; the others are watched. It returns the
// code that ended the connection, if one did.
func (e *engine) armMost(entities []entity, fields []uint16, refused func(field uint16, c code)) code {
	if len(entities) == 0 || len(fields) == 0 {
		return ok
	}
	if len(fields) <= maxFieldsOfGroup {
		c := maxLimit
		if len(e.watches) < maxWatches {
			var w *watch
			if w, c = e.arm(entities, fields, e.options.WatchInterval); c == ok {
				e.watches = append(e.watches, w)
				return ok
			}
		}
		switch {
		case c.gone():
			return c
		case len(fields) == 1 || c == maxLimit:
			for _, f := range fields {
				refused(f, c)
			}
			return ok
		}
	}
	half := min(len(fields)/2, maxFieldsOfGroup)
	if c := e.armMost(entities, fields[:half], refused); c != ok {
		return c
	}
	return e.armMost(entities, fields[half:], refused)
}

// dropWatches ends every watch.
func (e *engine) dropWatches() {
	e.profiler.stop(e)
	for _, w := range e.watches {
		e.disarm(w)
	}
	e.watches = nil
}

// read passes the latest values of a watch to take.
func (e *engine) read(w *watch, take func(*record)) code {
	step := max(1, batch/len(w.fields))
	for i := 0; i < len(w.entities); i += step {
		part := w.entities[i:min(i+step, len(w.entities))]
		if c := e.reader.latest(part, w.fields, take); !e.calls.count("dcgmEntitiesGetLatestValues", c) {
			return c
		}
	}
	return ok
}
