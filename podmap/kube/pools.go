package kube

import (
	"slices"
	"time"
)

// Bounds of the slices of one node, and of their devices with those kept.
const (
	maxSlices  = 1024
	maxDevices = 8192
)

// pools are the devices that DRA drivers publish.
//
// The deletion of a slice does not mean that its devices are gone: a kubelet
// that starts deletes all slices of its node, and the slices of a driver half a
// minute after its plugin went away, while pods go on using the devices. So
// devices are kept until their driver has published the pool in full.
type pools struct {
	node string
	live map[string]*slice // by the slice's name
	kept map[poolKey]map[string]Device
}

type poolKey struct{ driver, pool string }

// slice is one ResourceSlice.
type slice struct {
	key        poolKey
	generation int64
	count      int64 // of slices in the pool at this generation
	devices    []Device
}

func (*pools) kind() string { return "ResourceSlice" }

// sweep does nothing: published devices do not age.
func (*pools) sweep(time.Time, bool) bool { return false }

func (p *pools) ours(o *object) bool {
	return o.name != "" && o.driver != "" && o.pool != "" && o.node == p.node
}

func (p *pools) put(o *object) bool {
	old := p.live[o.name]
	if old == nil && len(p.live) >= maxSlices || p.devices()+len(o.devices) > maxDevices {
		return false
	}
	s := &slice{key: poolKey{o.driver, o.pool}, generation: o.generation, count: o.slices, devices: o.devices}
	for i := range s.devices {
		s.devices[i].Driver, s.devices[i].Pool = o.driver, o.pool
	}
	if p.live == nil {
		p.live = map[string]*slice{}
	}
	p.live[o.name] = s
	if old != nil {
		p.keep(old, time.Now())
	}
	p.settle(s.key)
	return true
}

func (p *pools) remove(o *object, now time.Time) {
	if old := p.live[o.name]; old != nil {
		delete(p.live, o.name)
		p.keep(old, now)
	}
}

// replace takes in a complete list.
func (p *pools) replace(list []*object, now time.Time) (overflow int) {
	listed := make(map[string]bool, len(list))
	for _, o := range list {
		listed[o.name] = true
	}
	// New slices come first: a pool that was published in full without a watch
	// leaves no kept devices.
	for _, o := range list {
		if !p.put(o) {
			overflow++
		}
	}
	for name, old := range p.live {
		if !listed[name] {
			delete(p.live, name)
			p.keep(old, now)
		}
	}
	return overflow
}

// keep keeps the devices of a deleted or replaced slice, unless its pool is
// complete without it.
func (p *pools) keep(old *slice, now time.Time) {
	if p.kept == nil {
		p.kept = map[poolKey]map[string]Device{}
	}
	kept := p.kept[old.key]
	if kept == nil {
		kept = map[string]Device{}
		p.kept[old.key] = kept
	}
	for _, d := range old.devices {
		d.Kept = now
		kept[d.Name] = d
	}
	p.settle(old.key)
}

// settle drops the kept devices of a complete pool, and devices that a slice
// names again.
func (p *pools) settle(key poolKey) {
	generation, complete := p.current(key)
	if complete {
		delete(p.kept, key)
		return
	}
	for _, s := range p.live {
		if s.key == key && s.generation == generation {
			for i := range s.devices {
				delete(p.kept[key], s.devices[i].Name)
			}
		}
	}
	if len(p.kept[key]) == 0 {
		delete(p.kept, key)
	}
}

// current returns the highest generation of a pool's slices, and whether all
// slices of it are there. Slices of lower generations are obsolete. The number
// restarts when all slices were deleted, so it does not order slices that are
// gone.
func (p *pools) current(key poolKey) (generation int64, complete bool) {
	var there, of int64
	for _, s := range p.live {
		switch {
		case s.key != key || there > 0 && s.generation < generation:
		case there > 0 && s.generation == generation:
			there, of = there+1, max(of, s.count)
		default:
			generation, there, of = s.generation, 1, s.count
		}
	}
	return generation, there > 0 && there >= of
}

func (p *pools) devices() int {
	n := 0
	for _, s := range p.live {
		n += len(s.devices)
	}
	for _, kept := range p.kept {
		n += len(kept)
	}
	return n
}

func (p *pools) count() (there, kept int) {
	for _, d := range p.list() {
		if d.Kept.IsZero() {
			there++
		} else {
			kept++
		}
	}
	return there, kept
}

// list returns the devices of each pool: the devices of its current generation and,
// until that is complete, also the devices of older slices and the kept devices.
func (p *pools) list() []Device {
	all := map[Device]Device{}
	add := func(d Device, over bool) {
		key := Device{Driver: d.Driver, Pool: d.Pool, Name: d.Name}
		if _, ok := all[key]; !ok || over {
			all[key] = d
		}
	}
	for _, kept := range p.kept {
		for _, d := range kept {
			add(d, false)
		}
	}
	for _, current := range []bool{false, true} {
		for _, s := range p.live {
			generation, complete := p.current(s.key)
			if is := s.generation == generation; is != current || !is && complete {
				continue
			}
			for _, d := range s.devices {
				add(d, true)
			}
		}
	}
	list := make([]Device, 0, len(all))
	for _, d := range all {
		list = append(list, d)
	}
	slices.SortFunc(list, compareDevices)
	return list
}
