package health

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// hit is the result of a condition on the readings of a device.
type hit struct {
	n, total int     // readings that match, and readings examined
	sum      float64 // of the examined readings
	show     [2]string
	// value of the first reading that matches, and the limit that it was
	// compared with.
	value, limit float64
}

// operand is a reading that is compared with a reading of another family.
type operand struct {
	test    *test
	reading *collector.Reading
}

// look is a summary of the readings of one device in one Snapshot.
type look struct {
	hits        []hit // by condition
	left, right []operand

	peers    bool // the node has another device of its class and vendor
	answers  bool // a source that reads the device has an answer from it
	examined bool // a source of faults has a reading: a condition of FPGAs, an error counter of GPUs
	gone     bool // the device is lost or needs a reset
	sampled  time.Time
	driver   Action // recovery action of the driver, unsetAction if not reported
	energy   float64
	ecc      float64 // uncorrected errors since the driver was loaded
	eccs     int     // number of its series
	pending  int     // repairs pending until a reset
	pendings int     // number of its series
}

// at examines d.
func (l *look) at(c *Catalogue, d *collector.Device) {
	clear(l.hits)
	*l = look{hits: l.hits, left: l.left[:0], right: l.right[:0], sampled: d.Sampled, energy: -1}
	l.gone = d.Down == collector.ReasonLost || d.Down == collector.ReasonResetRequired
	for i := range d.Readings {
		r := &d.Readings[i]
		if r.Metric == nil || r.Metric.Index() >= len(c.tests) {
			continue
		}
		l.known(d, r)
		for _, t := range c.tests[r.Metric.Index()] {
			if selects(t.where, r.Labels) {
				l.apply(t, r)
			}
		}
		for _, t := range c.thans[r.Metric.Index()] {
			if selects(t.thanWhere, r.Labels) {
				l.right = append(l.right, operand{t, r})
			}
		}
	}
	for _, a := range l.left {
		partners, fails, limit := 0, 0, 0.0
		for _, b := range l.right {
			if a.test != b.test || !a.test.pairs(a.reading, b.reading) {
				continue
			}
			limit = b.reading.Value
			if partners++; a.test.matches(a.reading.Value, limit) {
				fails++
			}
		}
		if partners > 0 {
			l.count(a.test, a.reading, limit, fails == partners)
		}
	}
	l.answers = l.answers && !d.Witness
}

// known processes readings that conditions cannot express.
func (l *look) known(d *collector.Device, r *collector.Reading) {
	switch r.Metric {
	case collector.DeviceUp:
		l.answers = l.answers || r.Value == 1
	case collector.RecoveryAction:
		if r.Value == 1 && len(r.Labels) > 0 {
			l.driver = max(l.driver, actionOf(r.Labels[0]))
		}
	case collector.EnergyJoules:
		l.energy = r.Value
	case collector.AERReports:
		l.examined = l.examined || d.Class == collector.GPU
	case collector.ECCErrors:
		l.examined = true
		if len(r.Labels) > 0 && r.Labels[0] == "uncorrected" {
			l.ecc += r.Value
			l.eccs++
		}
	case collector.RowRemapPending, collector.BankRemapPending, collector.RetiredPagesPending, collector.RepairPending:
		l.pendings++
		if r.Value == 1 {
			l.pending++
		}
	}
}

func (l *look) apply(t *test, r *collector.Reading) {
	if t.than != nil {
		l.left = append(l.left, operand{t, r})
		return
	}
	l.hits[t.index].sum += r.Value
	l.count(t, r, t.Value, !t.grows && t.matches(r.Value, t.Value))
}

func (l *look) count(t *test, r *collector.Reading, limit float64, failing bool) {
	h := &l.hits[t.index]
	h.total++
	l.examined = l.examined || t.fpga
	if !failing {
		return
	}
	if h.n++; h.n == 1 {
		h.value, h.limit = r.Value, limit
		for i, at := range t.show[:min(len(t.show), len(h.show))] {
			if at < len(r.Labels) {
				h.show[i] = r.Labels[at]
			}
		}
	}
}

// pairs reports whether a and b describe the same thing.
func (t *test) pairs(a, b *collector.Reading) bool {
	for _, p := range t.common {
		if p[0] >= len(a.Labels) || p[1] >= len(b.Labels) || a.Labels[p[0]] != b.Labels[p[1]] {
			return false
		}
	}
	return true
}
