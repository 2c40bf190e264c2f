package collector

import (
	"slices"
	"time"
)

// Recall adds identities of devices that no source has reported: an earlier
// process did, or the kubelet does. Sampled is when a device last answered, zero
// if that is unknown. A device whose identity its source cannot read takes the
// identity of the device recalled at its PCI address; a recalled device that its
// source does not list is missing. Where a source has another device at the
// address, or has the device, Recall changes nothing.
func (s *Sampler) Recall(devices ...Device) {
	s.mu.Lock()
	defer s.touch()
	defer s.mu.Unlock()
	for i := range devices {
		d := &devices[i]
		reads := func(st *sourceState) bool {
			return slices.ContainsFunc(st.covers, func(c Cover) bool { return !c.Bus && c.includes(d) })
		}
		if at := slices.IndexFunc(s.sources, reads); at >= 0 {
			s.sources[at].recall(*d)
		}
	}
}

func (st *sourceState) recall(d Device) {
	if st.devices[d.ID] != nil {
		return
	}
	ds := &deviceState{recalled: true}
	if !d.Sampled.IsZero() {
		ds.missing = anchored(d.Sampled, time.Now())
	}
	d.Sampled = time.Time{}
	if st.status.Up {
		ds.down = ReasonMissing
	}
	for id, at := range st.devices {
		if d.Parent != "" || at.device.Parent != "" || at.device.PCI != d.PCI {
			continue
		}
		if !at.device.Passing {
			return
		}
		delete(st.devices, id)
		d.remember(&at.device)
		ds.down = at.down
	}
	ds.device = d
	st.devices[d.ID] = ds
}
