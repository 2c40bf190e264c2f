package pcie

import (
	"fmt"

	"github.com/accel-exporter/accel-exporter/collector"
)

// card is one accelerator: one function, or all functions of its slot.
type card struct {
	known   collector.Device // identity without readings
	members []*member
	ends    []*end
	driver  *driverSlot
}

// member is one function of a card.
type member struct {
	*slot
	identity []string // the labels of accel_pcie_function_info
}

// newCard reads the functions of one card and the ports above the first.
func (s *Source) newCard(ids []*identity) *card {
	first := ids[0]
	c := &card{known: collector.Device{
		ID: first.address, PCI: first.address, Witness: true, Class: classOf(ids), Vendor: vendorName(first.vendor),
	}}
	for i, address := range first.path {
		e := newEnd(s.function(address, true), address, i)
		e.alone = i%2 == 0 && i+1 == len(first.path)
		c.ends = append(c.ends, e)
	}
	for i, id := range ids {
		m := newMember(s.function(id.address, i == 0), id)
		c.members = append(c.members, m)
		if i > 0 {
			c.known.Functions = append(c.known.Functions, id.address)
			c.ends = append(c.ends, newEnd(m.slot, id.address, 0))
		}
	}
	switch {
	case c.known.Class != collector.GPU:
	case c.known.Vendor == "nvidia" || c.known.Vendor == "amd":
		c.driver = s.driverOf(first.address)
	default: // only this Source has it
		c.known.Model = s.options.Names.Of(first.vendor, first.device)
	}
	return c
}

func classOf(ids []*identity) collector.Class {
	for _, id := range ids {
		if k := id.kind; k != "" {
			return k
		}
	}
	return collector.FPGA
}

func vendorName(id uint32) string {
	if name := collector.PCIVendor(id); name != "" {
		return name
	}
	return hexID(id)
}

func hexID(id uint32) string { return fmt.Sprintf("0x%04x", id) }

func newMember(sl *slot, id *identity) *member {
	port := ""
	if len(id.path) > 1 {
		port = id.path[1]
	}
	return &member{slot: sl, identity: []string{
		id.address, hexID(id.vendor), hexID(id.device), id.subsystemVendor, id.subsystemDevice, id.rev,
		fmt.Sprintf("0x%06x", id.class), id.numa, port,
	}}
}

// numa is the NUMA node in the member's identity.
func (m *member) numa() string { return m.identity[7] }

// device returns this round's readings of the card; it is false where the card
// has left the bus. A function that does not answer gives a reading and does
// not make the card absent: the kernel's and the ports' counters are most
// useful for a dead card.
func (c *card) device() (collector.Device, bool) {
	d := c.known
	here, answered := 0, 0
	for _, m := range c.members {
		if m.gone() {
			continue
		}
		here++
		if m.Stuck || m.last.read {
			answered++
		}
		if m.sampled.After(d.Sampled) {
			d.Sampled = m.sampled
		}
		m.readings(&d)
	}
	if here == 0 {
		return d, false
	}
	if answered == 0 {
		d.Down = collector.ReasonError
	}
	for _, e := range c.ends {
		e.readings(&d)
	}
	if c.driver != nil {
		c.driver.readings(&d)
	}
	m := c.members[0]
	d.Set(collector.DeviceInfo, 1, string(d.Class), d.Vendor, d.Model, "", "", d.PCI, m.numa(), "", "", "")
	return d, true
}

// readings adds the readings of a function.
func (m *member) readings(d *collector.Device) {
	d.Set(collector.PCIeFunctionInfo, 1, m.identity...)
	if !m.Valid {
		return
	}
	s := &m.last
	if s.read {
		d.SetBool(collector.PCIeDriverBound, s.driver != "", m.address, s.driver)
	}
	if d.Driver == "" {
		d.Driver = s.driver
	}
	if s.group != "" {
		d.KubeIDs = []string{"/dev/vfio/" + s.group} // Documentation/driver-api/vfio.rst
	}
	d.KubeIDs = append(d.KubeIDs, s.nodes...) // Intel's device plugin names card0-0
	if asleep, known := s.power.suspended(); known {
		d.SetBool(collector.PCIeSuspended, asleep, m.address)
	}
}
