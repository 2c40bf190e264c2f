package allocation

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

var (
	stateLabels       = pairs(podmap.States)
	listLabels        = pairs(podmap.Outcomes, "list")
	allocatableLabels = pairs(podmap.Outcomes, "allocatable")
	releaseLabels     = pairs(podmap.Releases)
	allocationLabels  = pairs([]string{"listed", "kept", "contested", "superseded", "unresolved", "unresolved_accelerator", "omitted"})
	rejectedLabels    = pairs([]string{"malformed", "overflow"})
	hows              = []podmap.How{
		podmap.HowAlias, podmap.HowID, podmap.HowInstance, podmap.HowProfile, podmap.HowMinor, podmap.HowPCI, podmap.HowFunction,
		podmap.HowName, podmap.HowIndex, podmap.HowHash, podmap.HowSole, podmap.HowNone, podmap.HowAmbiguous, podmap.HowUnknown, podmap.HowIgnored,
	}
	howLabels = pairs(hows)
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
	if p.pods.State != podmap.StateAbsent || !p.pods.Time.IsZero() {
		r = p.publishPodmap(r)
	}
	if !p.pods.Time.IsZero() {
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
	for _, f := range p.firsts {
		s.Distributions = append(s.Distributions, f.published)
	}
}

func (p *publisher) publishPodmap(r []collector.Reading) []collector.Reading {
	add := func(m *collector.Metric, v float64, labels []string) {
		r = append(r, collector.Reading{Metric: m, Labels: labels, Value: v})
	}
	m, st, x := p.pods, &p.join.status, p.join
	if !m.Time.IsZero() {
		add(collector.PodmapAge, age(m.Time, p.now), nil)
		add(collector.PodmapPods, float64(m.Pods), nil)
		for i, n := range []int{len(m.Allocations) - x.beside, st.Kept, st.Contested, len(m.Superseded), len(x.unresolved), x.accelerators, x.omitted} {
			add(collector.PodmapAllocations, float64(n), allocationLabels[i])
		}
		for i, how := range hows {
			add(collector.PodmapIDs, float64(x.how[how]), howLabels[i])
		}
	}
	if !m.Confirmed.IsZero() {
		add(collector.PodmapUnconfirmed, age(m.Confirmed, p.now), nil)
	}
	if p.options.Status == nil {
		return r
	}
	for i, outcome := range podmap.Outcomes {
		add(collector.PodmapCalls, float64(st.Calls[outcome]), listLabels[i])
		add(collector.PodmapCalls, float64(st.AllocatableCalls[outcome]), allocatableLabels[i])
	}
	for i, why := range podmap.Releases {
		add(collector.PodmapReleased, float64(st.Released[why]), releaseLabels[i])
	}
	if st.Took > 0 {
		add(collector.PodmapDuration, st.Took.Seconds(), nil)
	}
	add(collector.PodmapRejected, float64(st.Malformed), rejectedLabels[0])
	add(collector.PodmapRejected, float64(st.Overflow), rejectedLabels[1])
	add(collector.PodmapConnections, float64(st.Connections), nil)
	add(collector.PodmapMessageLimit, float64(st.MessageLimit), nil)
	return r
}
