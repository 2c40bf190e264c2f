package collector

import (
	"cmp"
	"slices"
	"strings"
)

// Cover names devices that a Source ought to see wherever there are any.
type Cover struct {
	Class Class
	// Vendor is empty for those of every vendor.
	Vendor string
	// Bus leaves out devices without a PCI address.
	Bus bool
}

func (c Cover) includes(d *Device) bool {
	return c.Class == d.Class && (c.Vendor == "" || c.Vendor == d.Vendor) && (!c.Bus || d.PCI != "")
}

// passedOn are the kernel's drivers that hold a device for somebody else: a
// virtual machine or a program. The vendor's driver cannot see it.
var passedOn = []string{"vfio-pci", "pci-stub", "uio_pci_generic", "igb_uio"}

// sight is one device as one source saw it.
type sight struct {
	device Device
	source *sourceState
}

// merge makes one device of what several sources say of it, and says of each
// device who sees it. Of sources that know it by its identity the one that was
// added first speaks, and the others add the families that it has not; what
// witnesses saw is added to the device that is at the place.
func (s *Sampler) merge(sights []sight) []Device {
	devices := make([]Device, 0, len(sights))
	places, ids := map[string]int{}, map[string]int{}
	by := make([]*sourceState, 0, len(sights)) // who speaks for the device
	seen := make([][]string, 0, len(sights))   // names of sources, by device
	for _, w := range sights {
		if w.device.Witness {
			continue
		}
		d := &w.device
		if i, ok := ids[d.ID]; ok && by[i] != w.source {
			devices[i].supplement(d)
			seen[i] = append(slices.Clone(seen[i]), w.seen()...)
			continue
		}
		if d.Passing && d.Parent != "" && s.named(d) {
			continue
		}
		by = append(by, w.source)
		d.index(ids, len(devices))
		if d.Parent == "" && d.PCI != "" {
			places[d.PCI] = len(devices)
			for _, f := range d.Functions {
				places[f] = len(devices)
			}
		}
		devices, seen = append(devices, *d), append(seen, w.seen())
	}
	for _, w := range sights {
		if !w.device.Witness {
			continue
		}
		i, ok := places[w.device.PCI]
		for _, f := range w.device.Functions {
			if !ok {
				i, ok = places[f]
			}
		}
		if !ok {
			devices, seen = append(devices, w.device), append(seen, w.seen())
			continue
		}
		d := &devices[i]
		seen[i] = append(seen[i], w.seen()...)
		if d.Driver == "" {
			d.Driver = w.device.Driver
		}
		for _, r := range w.device.Readings {
			if r.Metric != DeviceInfo {
				d.Readings = append(d.Readings, r)
			}
		}
	}
	for i := range devices {
		s.markSeen(&devices[i], seen[i])
	}
	return devices
}

// named reports whether a source that knows partitions such as d by their
// identity answers, or is about to: d's ID is its place only, and its series
// would change their name a moment later.
func (s *Sampler) named(d *Device) bool {
	return slices.ContainsFunc(s.sources, func(st *sourceState) bool {
		covers := slices.ContainsFunc(st.covers, func(c Cover) bool { return c.includes(d) })
		return covers && (st.status.Up || st.status.Reason == SourceStarting)
	})
}

// index notes by which names another source may know d. One that knows no UUIDs
// of MIG devices calls them by their place, as device plugins once did.
func (d *Device) index(ids map[string]int, at int) {
	ids[d.ID] = at
	if d.Parent == "" {
		return
	}
	for _, name := range d.KubeIDs {
		if _, taken := ids[name]; !taken && strings.HasPrefix(name, "MIG-") {
			ids[name] = at
		}
	}
}

// supplement adds to d what o, which is the same device as another source saw
// it, says beyond it. A family comes from one origin: two would give one
// series two truths, and a counter two histories.
func (d *Device) supplement(o *Device) {
	has := make([]bool, len(table))
	for i, r := range d.Readings {
		has[r.Metric.index] = true
		if r.Metric == DeviceSampleTime && o.Sampled.After(d.Sampled) {
			d.Sampled, d.Readings[i].Value = o.Sampled, seconds(o.Sampled)
		}
	}
	for _, r := range o.Readings {
		if !has[r.Metric.index] {
			d.Readings = append(d.Readings, r)
		}
	}
	if d.Clients == nil {
		d.Clients = o.Clients
	}
	if d.Accounts == nil {
		d.Accounts = o.Accounts
	}
	d.Model, d.PCI, d.Driver = cmp.Or(d.Model, o.Model), cmp.Or(d.PCI, o.PCI), cmp.Or(d.Driver, o.Driver)
}

// seen returns the name of the source that sees the device now.
func (w *sight) seen() []string {
	if w.source.status.Up && w.device.Down != ReasonMissing && w.device.Down != ReasonLost {
		return w.source.names
	}
	return nil
}

// markSeen adds accel_device_seen for every source that answers and ought to
// see d.
func (s *Sampler) markSeen(d *Device, seen []string) {
	if d.Parent != "" || d.Class == "" {
		return
	}
	for _, st := range s.sources {
		if !st.status.Up || !slices.ContainsFunc(st.covers, func(c Cover) bool { return c.includes(d) }) {
			continue
		}
		sees := slices.Contains(seen, st.src.Name())
		if !sees && slices.Contains(passedOn, d.Driver) {
			continue
		}
		d.Readings = append(d.Readings, Reading{DeviceSeen, st.names, boolValue(sees)})
	}
}

// find returns the ID of the device at a PCI address, or "".
func (s *Sampler) find(pci string) string {
	found := ""
	for _, st := range s.sources {
		for id, ds := range st.devices {
			d := &ds.device
			if d.Parent == "" && (d.PCI == pci || slices.Contains(d.Functions, pci)) {
				if !d.Witness {
					return id
				}
				found = id
			}
		}
	}
	return found
}

// partition returns the ID of the one partition at a place of a device, as
// Event.Place has it, or "".
func (s *Sampler) partition(device, place string) string {
	name, found := "MIG-"+device+"/"+place, ""
	for _, st := range s.sources {
		for id, ds := range st.devices {
			if d := &ds.device; d.Parent != device || !slices.ContainsFunc(append([]string{id}, d.KubeIDs...), func(known string) bool {
				return known == name || strings.HasPrefix(known, name+"/")
			}) {
				continue
			}
			if found != "" && found != id {
				return "" // a GPU instance with several compute instances
			}
			found = id
		}
	}
	return found
}

// has reports whether a source has a device of that ID.
func (s *Sampler) has(id string) bool {
	return slices.ContainsFunc(s.sources, func(st *sourceState) bool { return st.devices[id] != nil })
}
