package dcgm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// client is what a child does with the library.
type client struct {
	stop func()
	errs []error
}

// open initialises go-dcgm, embedded or with its arguments.
func open(args ...string) (*client, error) {
	mode := dcgm.Embedded
	if len(args) > 0 {
		mode = dcgm.Standalone
	}
	stop, err := dcgm.Init(mode, args...)
	if err != nil {
		return nil, err
	}
	dcgm.FieldsInit()
	return &client{stop: stop}, nil
}

// close ends the engine and returns all that was wrong.
func (c *client) close() error {
	dcgm.FieldsTerm()
	c.stop()
	return errors.Join(c.errs...)
}

func (c *client) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// must notes an error with what was tried.
func (c *client) must(err error, what string) {
	if err != nil {
		c.failf("%s: %w", what, err)
	}
}

// watch watches the fields of the entities every 50 ms.
func (c *client) watch(fields []dcgm.Short, entities ...dcgm.GroupEntityPair) (dcgm.GroupHandle, dcgm.FieldHandle) {
	name := fmt.Sprintf("w%d", time.Now().UnixNano())
	group, err := dcgm.CreateGroup(name)
	c.must(err, "create group")
	for _, e := range entities {
		c.must(dcgm.AddEntityToGroup(group, e.EntityGroupId, e.EntityId), "add entity")
	}
	fg, err := dcgm.FieldGroupCreate(name, fields)
	c.must(err, "create field group")
	c.must(dcgm.WatchFieldsWithGroupEx(fg, group, 50_000, 600, 0), "watch")
	return group, fg
}

// read returns the latest values, by entity and field.
func (c *client) read(fields []dcgm.Short, entities ...dcgm.GroupEntityPair) map[point]dcgm.FieldValue_v2 {
	values, err := dcgm.EntitiesGetLatestValues(entities, fields, 0)
	c.must(err, "read")
	out := map[point]dcgm.FieldValue_v2{}
	for _, v := range values {
		out[point{v.EntityGroupId, v.EntityID, v.FieldID}] = v
	}
	return out
}

// until polls for what must come.
func (c *client) until(what string, ready func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ready() {
			return true
		}
	}
	c.failf("never: %s", what)
	return false
}

// inject does faults while the library is in use.
func (c *client) inject(faults ...string) {
	for _, f := range faults {
		err := sim.Update(os.Getenv(simtest.StateVar), func(s *sim.State) error { return s.Inject(strings.Fields(f)) })
		c.must(err, f)
	}
}

// clear takes all faults away.
func (c *client) clear() {
	c.must(sim.Update(os.Getenv(simtest.StateVar), func(s *sim.State) error { return s.Clear("all") }), "clear")
}

type point struct {
	group  dcgm.Field_Entity_Group
	entity uint
	field  dcgm.Short
}

func gpu(n uint) dcgm.GroupEntityPair {
	return dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_GPU, EntityId: n}
}

func gpus(n uint) []dcgm.GroupEntityPair {
	var out []dcgm.GroupEntityPair
	for i := range n {
		out = append(out, gpu(i))
	}
	return out
}

// blank reports whether a value is DCGM's blank value, by DCGM's own test.
func blank(v dcgm.FieldValue_v2) bool {
	switch v.FieldType {
	case dcgm.DCGM_FT_DOUBLE:
		return v.Float64() >= 140737488355328.0
	case dcgm.DCGM_FT_STRING:
		return strings.HasPrefix(*v.StringValue, "<<<")
	}
	return v.Int64() >= 0x7ffffffffffffff0
}
