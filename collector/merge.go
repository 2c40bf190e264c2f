package collector

import (
	"cmp"
	"slices"
	"strings"
)

// Cover selects the devices that a Source is expected to see.
type Cover struct {
	Class Class
	// Vendor is empty for every vendor.
	Vendor string
	// Bus leaves out devices without a PCI address.
	Bus bool
}

func (c Cover) includes(d *Device) bool {
	return c.Class == d.Class && (c.Vendor == "" || c.Vendor == d.Vendor) && (!c.Bus || d.PCI != "")
}

// Reserved reports whether the kernel driver of d reserves it for a virtual machine or a
// program in user space. The vendor's driver cannot see such a device.
func (d *Device) Reserved() bool {
	return strings.Contains(d.Driver, "vfio") || slices.Contains(passthrough, d.Driver)
}

// passthrough are such drivers without vfio in their names; vendors have variants of
// vfio-pci: nvgrace_gpu_vfio_pci, xe-vfio-pci. Xen's is pciback.
var passthrough = []string{"pci-stub", "pci-pf-stub", "pciback", "uio_pci_generic", "igb_uio"}

// unbound reports whether the bus shows the device without a kernel driver, and the
// device answers there: an administrator or a tool has taken it from its driver.
func (d *Device) unbound() bool {
	unbound := false
	for _, r := range d.Readings {
		switch {
		case r.Metric == PCIeResponding && r.Value == 0:
			return false
		case r.Metric == PCIeDriverBound && r.Label("pci_address") == d.PCI:
			unbound = r.Value == 0
		}
	}
	return unbound
}

// observation is one device as one source saw it; after merge, as all sources did.
type observation struct {
	Device
	source *sourceState // the first that knows the device
	seen   []string     // names of the sources that see it now
}

// observe returns the device as the source sees it.
func (st *sourceState) observe(d Device) observation {
	o := observation{Device: d, source: st}
	if st.status.Up && d.Down != ReasonMissing && d.Down != ReasonLost {
		o.seen = st.names
	}
	return o
}

// merger combines observations of the same device.
type merger struct {
	devices   []observation
	byID      map[string]int // position in devices
	byAddress map[string]int // of whole devices, by PCI address
}

// merge returns one device for all observations of it. The first registered
// source wins, per family; the others add families that it lacks. Witnesses add
// their readings to the device at the same PCI address.
func (s *Sampler) merge(observations []observation) []Device {
	m := merger{byID: map[string]int{}, byAddress: map[string]int{}}
	for i := range observations {
		o := &observations[i]
		switch {
		case o.Witness, m.supplement(o):
		case o.Passing && o.Parent != "" && s.named(&o.Device):
		default:
			m.add(o)
		}
	}
	for i := range observations {
		if o := &observations[i]; o.Witness {
			m.addWitness(o)
		}
	}
	devices := make([]Device, len(m.devices))
	for i := range m.devices {
		m.reserve(&m.devices[i].Device)
		s.markSeen(&m.devices[i])
		devices[i] = m.devices[i].Device
	}
	return devices
}

// supplement adds o to the device that another source knows by the same ID. It
// reports whether there is one.
func (m *merger) supplement(o *observation) bool {
	i, ok := m.byID[o.ID]
	if !ok || m.devices[i].source == o.source {
		return false
	}
	d := &m.devices[i]
	d.supplement(&o.Device)
	d.seen = append(slices.Clone(d.seen), o.seen...)
	return true
}

func (m *merger) add(o *observation) {
	at, d := len(m.devices), &o.Device
	m.devices = append(m.devices, *o)
	m.byID[d.ID] = at
	if d.Parent != "" {
		// A source without MIG UUIDs names MIG devices by their place, as
		// device plugins once did.
		for _, name := range d.KubeIDs {
			if _, taken := m.byID[name]; !taken && strings.HasPrefix(name, "MIG-") {
				m.byID[name] = at
			}
		}
		return
	}
	if d.PCI != "" {
		for _, address := range append([]string{d.PCI}, d.Functions...) {
			m.byAddress[address] = at
		}
	}
}

func (m *merger) addWitness(o *observation) {
	i, ok := m.byAddress[o.PCI]
	for _, f := range o.Functions {
		if !ok {
			i, ok = m.byAddress[f]
		}
	}
	if !ok {
		i, ok = m.byID[o.ID]
	}
	if !ok {
		m.devices = append(m.devices, *o)
		return
	}
	d := &m.devices[i]
	d.seen = append(slices.Clone(d.seen), o.seen...)
	if d.Down == ReasonMissing && o.Driver != "" {
		d.Driver = o.Driver // it has left its own
	}
	// A device that has not answered yet has neither.
	d.Driver, d.Vendor = cmp.Or(d.Driver, o.Driver), cmp.Or(d.Vendor, o.Vendor)
	switch {
	case d.Sampled.IsZero():
		d.identify(&o.Device)
	case d.Reserved(): // the device plugin names it by its IOMMU group from now on
		d.adopt(o.KubeIDs)
	}
	for _, r := range o.Readings {
		if r.Metric != DeviceInfo {
			d.Readings = append(d.Readings, r)
		}
	}
}

// reserve looks for a missing device on the bus. It is unknown if another driver
// reserves it: it has left its own driver on purpose, often for a while. Without a
// driver it is unbound.
func (m *merger) reserve(d *Device) {
	whole := d
	if i, ok := m.byID[d.Parent]; ok && d.Parent != "" {
		whole = &m.devices[i].Device
	}
	reserved := whole.Reserved()
	if d.Down != ReasonMissing || !reserved && !whole.unbound() {
		return
	}
	d.Down = ""
	d.Readings = slices.DeleteFunc(d.Readings, func(r Reading) bool { return r.Metric == DeviceUp })
	if !reserved {
		d.Down = ReasonUnbound
		d.SetBool(DeviceUp, false, ReasonUnbound)
	}
}

// identify adds to d, which has never answered, what the witness o knows of it.
func (d *Device) identify(o *Device) {
	if d.Passing && o.ID != o.PCI {
		d.ID, d.Passing = o.ID, false
	}
	d.Model, d.PCI = cmp.Or(d.Model, o.Model), cmp.Or(d.PCI, o.PCI)
	d.adopt(o.KubeIDs)
	info, known := d.info(), o.info()
	switch {
	case known == nil:
	case info == nil:
		d.Readings = append(d.Readings, *known)
	default:
		info.Labels = slices.Clone(info.Labels)
		for i := range info.Labels {
			info.Labels[i] = cmp.Or(info.Labels[i], known.Labels[i])
		}
	}
}

// adopt adds further ids by which the kubelet may know d.
func (d *Device) adopt(ids []string) {
	d.KubeIDs = slices.Clip(d.KubeIDs)
	for _, id := range ids {
		if !slices.Contains(d.KubeIDs, id) {
			d.KubeIDs = append(d.KubeIDs, id)
		}
	}
}

// info returns the accel_device_info of d, or nil.
func (d *Device) info() *Reading {
	i := slices.IndexFunc(d.Readings, func(r Reading) bool { return r.Metric == DeviceInfo })
	if i < 0 {
		return nil
	}
	return &d.Readings[i]
}

// place is the position of the index in the labels of accel_device_info.
var place = slices.Index(DeviceInfo.Labels, "index")

// number returns the index of d among its kind, or "".
func (d *Device) number() string {
	if info := d.info(); info != nil {
		return info.Label("index")
	}
	return ""
}

// renumbered removes the index of a device that is missing: the driver has given it
// to another.
func (d *Device) renumbered() {
	if d.number() != "" {
		d.Readings = slices.Clone(d.Readings) // Snapshots share them
		info := d.info()
		info.Labels = slices.Clone(info.Labels)
		info.Labels[place] = ""
	}
}

// named reports whether another source identifies partitions such as d, and
// answers or is about to: the ID of d is its place only, and its series would
// change their name a moment later.
func (s *Sampler) named(d *Device) bool {
	return slices.ContainsFunc(s.sources, func(st *sourceState) bool {
		covers := slices.ContainsFunc(st.covers, func(c Cover) bool { return c.includes(d) })
		return covers && (st.status.Up || st.status.Reason == SourceStarting)
	})
}

// supplement adds what o, the same device from another source, has beyond d. A
// family comes from one source: two would give one series two values, and a
// counter two histories.
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
	d.Model, d.PCI, d.Driver = cmp.Or(d.Model, o.Model), cmp.Or(d.PCI, o.PCI), cmp.Or(d.Driver, o.Driver)
}

// markSeen adds accel_device_seen for every source that answers and is expected
// to see d.
func (s *Sampler) markSeen(d *observation) {
	if d.Parent != "" || d.Class == "" {
		return
	}
	for _, st := range s.sources {
		if !st.status.Up || !slices.ContainsFunc(st.covers, func(c Cover) bool { return c.includes(&d.Device) }) {
			continue
		}
		sees := slices.Contains(d.seen, st.src.Name())
		if !sees && (d.Reserved() || d.Down == ReasonUnbound) {
			continue
		}
		d.Readings = append(d.Readings, Reading{DeviceSeen, st.names, boolValue(sees)})
	}
}
