package dcgm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// device is one device with this round's readings.
type device struct {
	entity   entity
	identity collector.Device // its Readings are Infos
	// capability is the major version of the compute capability, 0 unknown.
	capability int
	// answered is when the host engine last reported the device as healthy.
	answered time.Time
	// down is a collector.Reason constant, or empty.
	down string
	// missing is why a value is absent, once that is counted.
	missing map[place]verdict
	// latest is when the host engine read the latest value of a row, and stamps are
	// those times by row.
	latest time.Time
	stamps map[place]stamp
	// links are the label values of its links, by place.
	links map[place][]string
	// sxid are the last numbers of fatal and other SXids; -1 before the first
	// read.
	sxid [2]int64
	// xid is when the last Xid happened by the host engine's clock, 0 for none,
	// -1 before the first read.
	xid int64
	// fell is when the GPU fell off the bus (Xid 79), newest when the host engine read
	// the latest value of a row, both by its clock; 0 for never.
	fell, newest int64
	now          collector.Device // of this round
}

// place is one field of one entity.
type place struct {
	entity entity
	field  uint16
}

func newDevice(e entity) *device {
	return &device{entity: e, missing: map[place]verdict{}, stamps: map[place]stamp{}, links: map[place][]string{}, sxid: [2]int64{-1, -1}, xid: -1}
}

// begin starts a round.
func (d *device) begin() {
	d.now = d.identity
	d.now.Readings = slices.Clone(d.identity.Readings)
	d.now.Down, d.now.Sampled = d.down, d.answered
}

// stamp is a timestamp of the host engine, and its time by the monotonic clock.
type stamp struct {
	ts int64
	at time.Time
}

// seen records and returns when the host engine read the value of a row. Its timestamps
// are times of day. set is whether the clock was set since the last round: then the age
// of a new value is unknown, and less than the time between two rounds.
func (d *device) seen(p place, ts int64, now time.Time, set bool) time.Time {
	delete(d.missing, p)
	s := d.stamps[p]
	if s.ts != ts {
		s = stamp{ts, now}
		if age := now.Sub(time.UnixMicro(ts)); age > 0 && !set {
			s.at = now.Add(-age)
		}
		d.stamps[p] = s
	}
	if s.at.After(d.latest) {
		d.latest = s.at
	}
	return s.at
}

// set sets the value of a row.
func (d *device) set(r *row, v float64, labels []string) {
	d.now.Set(r.metric, r.of(v), labels...)
}

// linkLabels returns the label values of a link's row, made once.
func (d *device) linkLabels(p place, r *row) []string {
	l, made := d.links[p]
	if !made {
		l = append([]string{strconv.Itoa(p.entity.port())}, r.labels...)
		d.links[p] = l
	}
	return l
}

// describe sets the device's Info.
func (d *device) describe(index, serial, profile string) {
	i := &d.identity
	i.Readings = nil
	i.Set(collector.DeviceInfo, 1, string(i.Class), i.Vendor, i.Model, "", index, i.PCI, "", serial, "", profile)
}

// pciAddress formats an address as the kernel does: 00000000:1B:00.0 becomes
// 0000:1b:00.0. It is empty where s is no address.
func pciAddress(s string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(s), ":")
	bus, rest, ok2 := strings.Cut(rest, ":")
	slot, function, ok3 := strings.Cut(rest, ".")
	if !ok || !ok2 || !ok3 {
		return ""
	}
	var n [4]uint64
	for i, part := range []string{domain, bus, slot, function} {
		v, err := strconv.ParseUint(part, 16, 32)
		if err != nil {
			return ""
		}
		n[i] = v
	}
	return addressOf(n)
}

// addressOf formats domain, bus, device and function; it is empty where they
// are out of range.
func addressOf(n [4]uint64) string {
	if n[0] > 0xffffffff || n[1] > 0xff || n[2] > 0x1f || n[3] > 7 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3])
}

// group is a kind of entity, DCGM_FE_*.
type group uint32

const (
	gpus      group = 1
	switches  group = 3
	instances group = 4 // of GPUs: MIG
	computes  group = 5 // compute instances in them
	links     group = 6
	cpus      group = 7
	cores     group = 8
)

// entity is the subject of a field's value.
type entity struct {
	group group
	id    uint32
}

// link returns the entity of one NVLink of a GPU or switch. Its id is
// dcgm_link_t: the parent's group in 8 bits, the port in 16, the parent's id in
// 8.
func link(parent entity, port int) entity {
	return entity{links, uint32(parent.group)&0xff | uint32(port&0xffff)<<8 | parent.id&0xff<<24}
}

// port is the number of a link, owner the device that it belongs to.
func (e entity) port() int { return int(e.id >> 8 & 0xffff) }

func (e entity) owner() entity { return entity{group(e.id & 0xff), e.id >> 24} }

// part is the value of the label entity: the part of its device that e is.
func (e entity) part() string {
	switch e.group {
	case links:
		return "link-" + strconv.Itoa(e.port())
	case cores:
		return "core-" + strconv.FormatUint(uint64(e.id), 10)
	}
	return ""
}
