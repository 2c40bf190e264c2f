package allocation

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

var (
	stateLabels      = pairs(podmap.States)
	allocationLabels = pairs([]string{"listed", "kept", "contested", "superseded", "unresolved", "unresolved_accelerator", "omitted"})
)

// publishNode adds the kubelet's data. Without a kubelet, that is the state
// alone.
func (p *publisher) publishNode(s *collector.Snapshot, uses []podUse) {
	r := slices.Grow(s.Node, 80+3*len(p.join.summary.resources)+4*len(uses))
	add := func(m *collector.Metric, v float64, labels []string) {
		r = append(r, collector.Reading{Metric: m, Labels: labels, Value: v})
	}
	for i, state := range podmap.States {
		add(collector.PodmapState, boolean(p.pods.State == state), stateLabels[i])
	}
	if !p.pods.Time.IsZero() {
		r = p.publishPodmap(r)
		for _, x := range p.join.summary.resources {
			if x.plugin {
				add(collector.ResourceAllocatable, float64(x.allocatable), x.labels)
			}
			add(collector.ResourceHeld, float64(x.allocated), x.labels)
			add(collector.ResourceDevices, float64(x.devices), x.labels)
		}
	}
	for i := range uses {
		r = uses[i].publish(r)
	}
	s.Node = r
}

// publishPodmap adds the number of allocations by kind.
func (p *publisher) publishPodmap(r []collector.Reading) []collector.Reading {
	m, st, x := p.pods, &p.join.status, p.join
	for i, n := range []int{len(m.Allocations) - x.beside, st.Kept, st.Contested, len(m.Superseded), len(x.unresolved), x.accelerators, x.omitted} {
		r = append(r, collector.Reading{Metric: collector.PodmapAllocations, Labels: allocationLabels[i], Value: float64(n)})
	}
	return r
}
