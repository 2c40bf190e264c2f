package collector

import (
	"slices"
	"time"
)

// Recall adds identities of devices that an earlier process reported; Sampled is when
// a device last answered. It must be called before Run. A device whose identity its
// source cannot read takes the identity of the device recalled at its PCI address; a
// recalled device that its source does not list is missing.
func (s *Sampler) Recall(devices ...Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range devices {
		reads := func(st *sourceState) bool {
			return slices.ContainsFunc(st.covers, func(c Cover) bool { return !c.Bus && c.includes(&d) })
		}
		if at := slices.IndexFunc(s.sources, reads); at >= 0 {
			ds := &deviceState{recalled: true, missing: anchored(d.Sampled, time.Now())}
			d.Sampled = time.Time{}
			ds.device = d
			s.sources[at].devices[d.ID] = ds
		}
	}
}
