//go:build linux && cgo

package dcgm

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// deviceOf returns the device that an entity belongs to, nil for an unknown
// one.
func (e *engine) deviceOf(x entity) *device {
	switch x.group {
	case links:
		return e.devices[x.owner()]
	case cores:
		return e.devices[e.there.owner[x]]
	}
	return e.devices[x]
}

// take adds one value to the round.
func (e *engine) take(r *record, now time.Time) {
	x := r.entity()
	d, p := e.deviceOf(x), place{x, r.field}
	// A field that has a row and is configured too arrives by two watches.
	if d == nil || e.taken[p] {
		return
	}
	e.taken[p] = true
	if f := e.asked[r.field]; f != nil && f.reads(x.group) {
		why := f.take(d, r)
		if why == isValue {
			delete(d.missing, p)
		} else {
			e.miss(d, r, f.metric, why)
		}
	}
	e.takeRow(d, r, now)
}

// takeRow sets the family of the field, if it has one.
func (e *engine) takeRow(d *device, r *record, now time.Time) {
	x := r.entity()
	rows := e.rowsOf(x)
	switch {
	case r.field == fieldXid && e.options.Alone:
		e.takeXid(d, r)
		return
	case x.group == switches && (r.field == fieldSXidFatal || r.field == fieldSXidNonFatal):
		e.takeSXid(d, r)
		return
	case x.group == links && r.field == fieldLinkStatus && d.entity.group == switches:
		e.takeLinkStatus(d, r)
		return
	}
	row := rowOf(rows, r.field)
	if row == nil {
		return
	}
	v, why := r.number()
	if r.field == fieldPower && why == isValue && v == 0 {
		why = lacks // what DCGM has for a driver that refuses this reading
	}
	if why != isValue {
		e.miss(d, r, row.metric, why)
		return
	}
	p := place{x, r.field}
	d.newest = max(d.newest, r.ts)
	if now.Sub(d.seen(p, r.ts, now, e.set)) > e.options.stale() {
		return // the driver hangs under the host engine
	}
	labels := row.labels
	if x.group == links {
		labels = d.linkLabels(p, row)
	}
	if _, none := d.missing[place{x, fieldPower}]; r.field == fieldPowerAverage && (none || !e.taken[place{x, fieldPower}]) {
		d.now.Set(collector.PowerWatts, v)
		return
	}
	d.set(row, v, labels)
}

// rowsOf returns the rows of an entity.
func (e *engine) rowsOf(x entity) []row {
	switch x.group {
	case gpus:
		if e.options.Alone {
			return wholeRows
		}
	case instances:
		if e.options.Alone {
			return memoryRows
		}
	case switches:
		return switchRows
	case links:
		if x.owner().group == switches {
			return linkRows
		}
	case cpus:
		return cpuRows
	}
	return nil
}

// takeLinkStatus sets whether a switch's link is active.
func (e *engine) takeLinkStatus(d *device, r *record) {
	v, why := r.number()
	switch {
	case why != isValue:
		e.miss(d, r, collector.NVLinkUp, why)
	case v < 0: // unknown
		d.now.Reject(collector.NVLinkUp, collector.RejectSentinel)
	default:
		row := row{field: fieldLinkStatus, metric: collector.NVLinkUp, scale: asIs}
		d.now.SetBool(collector.NVLinkUp, v == linkActive, d.linkLabels(place{r.entity(), fieldLinkStatus}, &row)...)
	}
}

// takeSXid emits the SXid that a switch has reported since the last round. An
// SXid from before the first round is not emitted.
func (e *engine) takeSXid(d *device, r *record) {
	v, why := r.number()
	if why != isValue || v < 0 {
		e.miss(d, r, collector.SXidErrors, why)
		return
	}
	last := &d.sxid[r.field-fieldSXidFatal]
	if *last >= 0 && int64(v) != *last && v > 0 {
		sub := collector.SubNonfatal
		if r.field == fieldSXidFatal {
			sub = collector.SubFatal
		}
		e.emit(collector.Event{Time: time.UnixMicro(r.ts), Source: Name, Device: d.identity.ID, PCI: d.identity.PCI, Kind: collector.EventSXid, Code: uint64(v), Sub: sub})
	}
	*last = int64(v)
}

// takeXid emits the Xid that a GPU or MIG instance has reported since the last
// round. An Xid from before the first round is not emitted.
func (e *engine) takeXid(d *device, r *record) {
	at := int64(0)
	code, why := r.number()
	if why == isValue {
		at = r.ts
	}
	if d.xid >= 0 && at != 0 && at != d.xid {
		ev := collector.Event{Time: time.UnixMicro(at), Source: Name, Device: d.identity.ID, Kind: collector.EventXid, Code: uint64(code)}
		if d.identity.Parent != "" {
			ev.Device, ev.Partition = d.identity.Parent, d.identity.ID
		}
		e.emit(ev)
	}
	if at != 0 || d.xid < 0 {
		d.xid = at
	}
	if code == xidOffBus {
		d.fell = at
	}
}

// miss records that a requested value is absent. An absence is counted once, until
// the value arrives.
func (e *engine) miss(d *device, r *record, m *collector.Metric, why verdict) {
	if why.code == gpuLost && d.entity.group == gpus {
		d.now.Down = collector.ReasonLost
	}
	p := place{r.entity(), r.field}
	switch {
	case d.missing[p] == why:
		return
	case why.reject != "":
		d.now.Reject(m, why.reject)
	default:
		e.calls.count(callOf(r.field), why.code)
	}
	d.missing[p] = why
}
