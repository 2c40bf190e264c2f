package allocation

import (
	"maps"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// podMeta has the readings of the pods with allocations, from the API server.
type podMeta struct {
	holders  *podmap.Map // of which shown was made
	known    *kube.Map
	readings []collector.Reading
}

// publish adds the data of the API server, if it is configured.
func (m *podMeta) publish(s *collector.Snapshot, n *node, o *Options) {
	if o.Meta == nil {
		return
	}
	if known := o.Meta(); known != m.known || n.pods != m.holders {
		*m = podMeta{holders: n.pods, known: known, readings: describePods(n.pods, known, n.settings.MaxHolders)}
	}
	s.Node = append(s.Node, m.readings...)
}

// describePods returns the readings of the pods with allocations, of at most
// that many pods.
func describePods(holders *podmap.Map, known *kube.Map, most int) []collector.Reading {
	if known == nil {
		return nil
	}
	var r []collector.Reading
	done := map[podmap.Pod]bool{}
	for i := range holders.Allocations {
		p := holders.Allocations[i].Pod
		if done[p] || len(done) >= most {
			continue
		}
		done[p] = true
		pod, ok := known.Pod(p.Namespace, p.Name)
		if !ok {
			continue
		}
		r = append(r, collector.Reading{Metric: collector.PodInfo, Value: 1, Labels: []string{
			p.Namespace, p.Name, pod.UID, pod.Controller.Kind, pod.Controller.Name, pod.Workload.Kind, pod.Workload.Name,
		}})
		for _, label := range slices.Sorted(maps.Keys(pod.Labels)) {
			r = append(r, collector.Reading{Metric: collector.PodLabelInfo, Value: 1, Labels: []string{p.Namespace, p.Name, label, pod.Labels[label]}})
		}
	}
	return r
}
