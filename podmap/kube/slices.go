package kube

import (
	"cmp"
	"slices"
	"time"
)

// sliceStore has the devices that DRA drivers publish.
//
// The deletion of a slice does not mean that its devices are gone: a kubelet
// that starts deletes all slices of its node, and the slices of a driver half a
// minute after its plugin went away, while pods go on using the devices. So
// devices are kept until their driver has published the pool in full.
type sliceStore struct {
	node    string
	slices  map[string]slice // by the slice's name
	devices map[poolKey]map[string]Device
}

type poolKey struct{ driver, pool string }

// slice is one ResourceSlice.
type slice struct {
	pool       poolKey
	generation int64
	count      int // of slices in the pool at this generation
	devices    []Device
}

func (*sliceStore) kind() string { return "ResourceSlice" }

func (s *sliceStore) put(d *document) {
	if in, ok := s.read(d); ok {
		s.slices[d.Metadata.Name] = in
		s.settle(in.pool)
	}
}

func (s *sliceStore) remove(d *document, _ time.Time) { delete(s.slices, d.Metadata.Name) }

// replace takes in a complete list.
func (s *sliceStore) replace(list []document, _ time.Time) {
	clear(s.slices)
	for i := range list {
		if in, ok := s.read(&list[i]); ok {
			s.slices[list[i].Metadata.Name] = in
		}
	}
	for _, in := range s.slices {
		s.settle(in.pool)
	}
}

// settle updates the devices of a pool from its slices. Slices of a lower
// generation are obsolete, and once all slices of the highest generation are
// there, their devices are all that the pool has. The number restarts when all
// slices were deleted, so it does not order slices that are gone.
func (s *sliceStore) settle(pool poolKey) {
	var of []slice
	for _, in := range s.slices {
		if in.pool == pool {
			of = append(of, in)
		}
	}
	slices.SortFunc(of, func(a, b slice) int { return cmp.Compare(a.generation, b.generation) })
	last := of[len(of)-1]
	current := of[slices.IndexFunc(of, func(in slice) bool { return in.generation == last.generation }):]
	if s.devices[pool] == nil || len(current) >= last.count {
		s.devices[pool], of = map[string]Device{}, current
	}
	for _, in := range of {
		for _, d := range in.devices {
			s.devices[pool][d.Name] = d
		}
	}
}

// count returns the number of devices.
func (s *sliceStore) count() int {
	n := 0
	for _, devices := range s.devices {
		n += len(devices)
	}
	return n
}

// publishedDevice is one device of a ResourceSlice. resource.k8s.io/v1beta1 has
// the attributes under basic.
type publishedDevice struct {
	Name       string               `json:"name"`
	Attributes map[string]attribute `json:"attributes"`
	Basic      struct {
		Attributes map[string]attribute `json:"attributes"`
	} `json:"basic"`
}

// attribute is {"string": "x"}, or of another type and not read.
type attribute struct {
	String string `json:"string"`
}

// read returns a slice of this node, or false for any other document.
func (s *sliceStore) read(d *document) (slice, bool) {
	in := slice{
		pool:       poolKey{driver: d.Spec.Driver, pool: d.Spec.Pool.Name},
		generation: d.Spec.Pool.Generation, count: d.Spec.Pool.ResourceSliceCount,
	}
	for _, p := range d.Spec.Devices {
		if p.Name == "" {
			continue
		}
		first := func(names ...string) (text string) {
			for _, n := range names {
				text = cmp.Or(text, p.Attributes[n].String, p.Basic.Attributes[n].String)
			}
			return text
		}
		in.devices = append(in.devices, Device{
			Driver: in.pool.driver, Pool: in.pool.pool, Name: p.Name,
			UUID: first("uuid"), ParentUUID: first("parentUUID"),
			PCI: first("resource.kubernetes.io/pciBusID", "pcieBusID", "pciBusID", "pciAddress", "pciAddr"),
		})
	}
	ok := d.Metadata.Name != "" && in.pool.driver != "" && in.pool.pool != "" && d.Spec.NodeName == s.node
	return in, ok
}
