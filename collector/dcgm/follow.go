//go:build linux && cgo

package dcgm

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// follow lists the entities when that is due, and watches them.
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
		return ok // the entities are assumed to be unchanged
	}
	if e.devices != nil && v.equal(&e.there) {
		known, c := e.identifyAgain()
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

// build creates every watch again.
func (e *engine) build(now time.Time) code {
	e.dropWatches()
	old := e.devices
	e.devices = map[entity]*device{}
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
	} {
		if c := part(); c.gone() {
			return c
		}
	}
	return ok
}

// unidentified counts the devices without an identity.
func (e *engine) unidentified() (n int) {
	for _, d := range e.devices {
		if d.anonymous() {
			n++
		}
	}
	return n
}

func (d *device) anonymous() bool { return d.identity.ID == "" }

// identifyAgain reads the missing identities again and reports whether one was found.
func (e *engine) identifyAgain() (bool, code) {
	before := e.unidentified()
	if before == 0 {
		return false, ok
	}
	c := e.identify(nil, (*device).anonymous)
	return e.unidentified() < before, c
}

// identify reads the identity of the devices that asked selects. A device that
// returns none keeps its previous identity.
func (e *engine) identify(old map[entity]*device, asked func(*device) bool) code {
	for _, kind := range []struct {
		list   []entity
		fields []uint16
	}{
		{e.there.gpus, []uint16{fieldName, fieldSerial, fieldUUID, fieldPCI, fieldCapability}},
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
			e.devices[x].setIdentity(x, facts, numbers)
			if was := old[x]; e.devices[x].anonymous() && was != nil {
				e.devices[x].identity, e.devices[x].capability = was.identity, was.capability
			}
		}
	}
	return ok
}

// setIdentity sets the identity of the device from what was read.
func (d *device) setIdentity(x entity, facts map[place]string, numbers map[place]float64) {
	fact := func(f uint16) string { return facts[place{x, f}] }
	number := func(f uint16) float64 { return numbers[place{x, f}] }
	index := strconv.FormatUint(uint64(x.id), 10)
	switch x.group {
	case gpus:
		d.identity = collector.Device{ID: fact(fieldUUID), Class: collector.GPU, Vendor: "nvidia", Model: fact(fieldName), PCI: pciAddress(fact(fieldPCI))}
		d.capability = int(number(fieldCapability)) >> 16
		if d.identity.ID != "" {
			d.identity.KubeIDs = []string{d.identity.ID}
		}
	case switches:
		d.identity = collector.Device{Class: collector.Switch, Vendor: "nvidia"}
		if _, known := numbers[place{x, fieldBus}]; known {
			d.identity.PCI = addressOf([4]uint64{uint64(number(fieldDomain)), uint64(number(fieldBus)), uint64(number(fieldDevice)), uint64(number(fieldFunction))})
		}
		d.identity.ID = cmp.Or(d.identity.PCI, "nvswitch-"+index)
	case cpus:
		d.identity = collector.Device{ID: "cpu-" + index, Class: collector.CPU, Vendor: "nvidia", Model: fact(fieldCPUModel)}
	}
	d.describe(index, fact(fieldSerial), "")
}

// placeSlices makes devices of MIG instances. DCGM does not have their UUIDs:
// an instance with a single compute instance is named by its place, by which
// NVML's MIG device is found; an instance that several compute instances share
// belongs to none of them. Only their Info has the GPU's address, so that they
// are not merged with the GPU.
func (e *engine) placeSlices() {
	profiles := e.profiles()
	for _, s := range e.there.slices {
		parent := e.devices[s.gpu]
		if parent == nil || parent.identity.ID == "" {
			continue
		}
		d := newDevice(s.instance)
		id := parent.identity.ID + "/" + strconv.Itoa(s.gi)
		where := strconv.FormatUint(uint64(s.gpu.id), 10) + ":" + strconv.Itoa(s.gi)
		if len(s.cis) == 1 {
			ci := strconv.Itoa(s.cis[0])
			id, where = "MIG-"+id+"/"+ci, where+":"+ci
		}
		p := &parent.identity
		d.identity = collector.Device{ID: id, Parent: p.ID, Class: p.Class, Vendor: p.Vendor, Model: p.Model, PCI: p.PCI}
		d.describe(where, "", profiles[s.instance])
		d.identity.PCI, d.identity.Passing = "", true
		e.devices[s.instance] = d
	}
}

// profiles reads the profiles of MIG instances (1g.10gb), which DCGM has as
// their names. A connection that ends meanwhile is noticed by the next call.
func (e *engine) profiles() map[entity]string {
	out := map[entity]string{}
	if len(e.there.instances) == 0 {
		return out
	}
	w, c := e.arm(e.there.instances, []uint16{fieldName}, slowInterval)
	if c != ok {
		return out
	}
	e.read(w, func(r *record) {
		if s, why := r.text(); why == isValue {
			out[r.entity()] = s
		}
	})
	e.disarm(w)
	return out
}

// states reads the host engine's status of each GPU.
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

// wants reports whether a configured field is read of entities of g.
func (e *engine) wants(g group) bool { return len(of(e.asked, g)) > 0 }

// watchRows watches the rows of each kind of entity, and the configured fields.
func (e *engine) watchRows() code {
	var whole, part []uint16
	if e.options.Alone {
		whole, part = fieldsOf(wholeRows, fieldXid), fieldsOf(memoryRows, fieldXid)
	}
	for _, kind := range []struct {
		list   []entity
		fields []uint16
		group  group
	}{
		{e.there.gpus, whole, gpus},
		{e.there.instances, part, instances},
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
		refused := func(f uint16, c code) { e.calls.count(callOf(f), c) }
		if c := e.armMost(kind.list, of(e.asked, kind.group), refused); c != ok {
			return c
		}
	}
	return ok
}

// switchLinks are the links of switches. NVML reads the links of GPUs.
func (e *engine) switchLinks() []entity {
	return slices.DeleteFunc(slices.Clone(e.there.links), func(x entity) bool { return x.owner().group != switches })
}

// keyOf returns a text that is equal for equal fields.
func keyOf(fields []uint16) string {
	b := make([]rune, len(fields))
	for i, f := range fields {
		b[i] = rune(f)
	}
	return string(b)
}
