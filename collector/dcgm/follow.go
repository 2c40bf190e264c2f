//go:build linux && cgo

package dcgm

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// follow keeps up with which entities there are, and watches those.
func (e *engine) follow(now time.Time) code {
	if now.Before(e.nextLook) {
		return ok
	}
	e.nextLook = now.Add(slowInterval)
	v, c := e.look()
	if c != ok {
		if c.gone() || e.devices == nil {
			return c
		}
		return ok // what was there is taken to be there still
	}
	if e.devices != nil && v.equal(&e.there) {
		known, c := e.meet()
		switch {
		case c != ok:
			return c
		case known:
			return e.build(now)
		}
		e.states(now)
		return ok
	}
	e.there = v
	return e.build(now)
}

// build watches everything anew.
func (e *engine) build(now time.Time) code {
	e.policy.close()
	e.dropWatches()
	old := e.devices
	e.devices, e.skipped = map[entity]*device{}, map[skip]int{}
	for _, list := range [][]entity{e.there.gpus, e.there.switches, e.there.cpus} {
		for _, x := range list {
			e.devices[x] = newDevice(x)
		}
	}
	if c := e.identify(old, func(*device) bool { return true }); c != ok {
		return c
	}
	e.placeSlices()
	e.states(now)
	for _, part := range []func() code{
		e.watchRows,
		func() code { return e.profiler.start(e, now) },
		func() code { return e.health.start(e) },
		func() code { return e.policy.start(e) },
		func() code { return e.accounting.start(e) },
	} {
		if c := part(); c.gone() {
			return c
		}
	}
	return ok
}

// strangers are devices that have not said who they are.
func (e *engine) strangers() (n int) {
	for _, d := range e.devices {
		if d.stranger() {
			n++
		}
	}
	return n
}

func (d *device) stranger() bool { return d.identity.ID == "" }

// meet asks strangers again who they are, and reports whether one has said so.
func (e *engine) meet() (bool, code) {
	before := e.strangers()
	if before == 0 {
		return false, ok
	}
	c := e.identify(nil, (*device).stranger)
	return e.strangers() < before, c
}

// identify reads who those of the devices are that are asked for. One that
// does not say is who it was.
func (e *engine) identify(old map[entity]*device, asked func(*device) bool) code {
	for _, kind := range []struct {
		list   []entity
		fields []uint16
	}{
		{e.there.gpus, []uint16{fieldName, fieldSerial, fieldUUID, fieldPCI, fieldCapability, fieldSlowdown, fieldPowerLimit}},
		{e.there.switches, []uint16{fieldDomain, fieldBus, fieldDevice, fieldFunction}},
		{e.there.cpus, []uint16{fieldCPUModel}},
	} {
		list := slices.DeleteFunc(slices.Clone(kind.list), func(x entity) bool { return !asked(e.devices[x]) })
		if len(list) == 0 {
			continue
		}
		facts := map[place]string{}
		numbers := map[place]float64{}
		w, c := e.arm(list, kind.fields, slowInterval)
		if c == ok {
			c = e.read(w, func(r *record) {
				p := place{r.entity(), r.field}
				if s, why := r.text(); why == isValue {
					facts[p] = s
				} else if v, why := r.number(); why == isValue {
					numbers[p] = v
				}
			})
			e.disarm(w)
		}
		if c.gone() {
			return c
		}
		for _, x := range list {
			e.devices[x].know(x, facts, numbers)
			if was := old[x]; e.devices[x].stranger() && was != nil {
				e.devices[x].identity, e.devices[x].capability = was.identity, was.capability
			}
		}
	}
	return ok
}

// know takes what was read of who the device is.
func (d *device) know(x entity, facts map[place]string, numbers map[place]float64) {
	fact := func(f uint16) string { return facts[place{x, f}] }
	number := func(f uint16) float64 { return numbers[place{x, f}] }
	index := strconv.FormatUint(uint64(x.id), 10)
	switch x.group {
	case gpus:
		d.identity = collector.Device{ID: fact(fieldUUID), Class: collector.GPU, Vendor: "nvidia", Model: fact(fieldName), PCI: pciAddress(fact(fieldPCI))}
		d.capability = int(number(fieldCapability)) >> 16
		d.slowdown, d.powerLimit = number(fieldSlowdown), number(fieldPowerLimit)
		if d.identity.ID != "" {
			d.identity.KubeIDs = []string{d.identity.ID}
		}
	case switches:
		d.identity = collector.Device{Class: collector.Switch, Vendor: "nvidia"}
		if _, told := numbers[place{x, fieldBus}]; told {
			d.identity.PCI = addressOf([4]uint64{uint64(number(fieldDomain)), uint64(number(fieldBus)), uint64(number(fieldDevice)), uint64(number(fieldFunction))})
		}
		d.identity.ID = cmp.Or(d.identity.PCI, "nvswitch-"+index)
	case cpus:
		d.identity = collector.Device{ID: "cpu-" + index, Class: collector.CPU, Vendor: "nvidia", Model: fact(fieldCPUModel)}
	}
	d.describe(index, fact(fieldSerial), "")
}

// placeSlices makes devices of MIG instances. DCGM does not know their UUIDs:
// one with a single compute instance goes by its place, under which NVML's MIG
// device is found; what several share is none of them alone's. Their Info
// alone has the address of the GPU, as which they must not be recognised.
func (e *engine) placeSlices() {
	for _, s := range e.there.slices {
		parent := e.devices[s.gpu]
		if parent == nil || parent.identity.ID == "" {
			continue
		}
		d := newDevice(s.instance)
		id := parent.identity.ID + "/" + strconv.Itoa(s.gi)
		if len(s.cis) == 1 {
			id = "MIG-" + id + "/" + strconv.Itoa(s.cis[0])
		}
		p := &parent.identity
		d.identity = collector.Device{ID: id, Parent: p.ID, Class: p.Class, Vendor: p.Vendor, Model: p.Model, PCI: p.PCI}
		where := strconv.FormatUint(uint64(s.gpu.id), 10) + ":" + strconv.Itoa(s.gi)
		d.describe(where, "", "")
		d.identity.PCI, d.identity.Passing = "", true
		e.devices[s.instance] = d
	}
}

// states asks what the host engine thinks of each GPU.
func (e *engine) states(now time.Time) {
	for _, d := range e.devices {
		status := dcgm.EntityStatusOk
		if d.entity.group == gpus && has("dcgmGetGpuStatus") {
			status = dcgm.GetGPUStatus(uint(d.entity.id))
		}
		switch status {
		case dcgm.EntityStatusLost:
			d.down = collector.ReasonLost
		case dcgm.EntityStatusInaccessible, dcgm.EntityStatusDisabled, dcgm.EntityStatusDetached:
			d.down = collector.ReasonUnavailable
		case dcgm.EntityStatusOk:
			d.down, d.answered = "", now
		}
	}
}

// wants reports whether a field of entities of g is asked for.
func (e *engine) wants(g group) bool { return len(of(e.asked, g)) > 0 }

// watchRows watches the rows of each kind of entity, and what is asked for.
func (e *engine) watchRows() code {
	for _, s := range e.unknown {
		e.skipped[s] = 0
	}
	var whole, part []row
	if e.options.Alone {
		whole, part = wholeRows, memoryRows
	}
	for _, kind := range []struct {
		list   []entity
		fields []uint16
		group  group
	}{
		{e.there.gpus, fieldsOf(whole), gpus},
		{e.there.instances, fieldsOf(part), instances},
		{e.there.switches, fieldsOf(switchRows, fieldSXidFatal, fieldSXidNonFatal), switches},
		{e.switchLinks(), fieldsOf(linkRows, fieldLinkStatus), links},
		{e.there.cpus, fieldsOf(cpuRows), cpus},
	} {
		none := func(uint16, code) {} // counted as the call's error
		if c := e.armMost(kind.list, kind.fields, none); c != ok {
			return c
		}
	}
	for _, kind := range []struct {
		list  []entity
		group group
	}{{e.there.gpus, gpus}, {e.there.instances, instances}, {e.there.switches, switches}, {e.there.links, links}, {e.there.cpus, cpus}, {e.there.cores, cores}} {
		refused := func(f uint16, c code) {
			e.skipped[skip{e.asked[f].Name, c.String()}] += len(kind.list)
		}
		if c := e.armMost(kind.list, of(e.asked, kind.group), refused); c != ok {
			return c
		}
	}
	return ok
}

// switchLinks are the links of switches; those of GPUs are NVML's.
func (e *engine) switchLinks() []entity {
	return slices.DeleteFunc(slices.Clone(e.there.links), func(x entity) bool { return x.owner().group != switches })
}

func compareSkips(a, b skip) int {
	return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.reason, b.reason))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// keyOf is a text that is the same for the same fields.
func keyOf(fields []uint16) string {
	b := make([]rune, len(fields))
	for i, f := range fields {
		b[i] = rune(f)
	}
	return string(b)
}
