package allocation

import (
	"maps"
	"slices"
	"time"

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
	if o.MetaStatus == nil {
		return
	}
	st := o.MetaStatus()
	if st.Pods.State != kube.StateNone {
		s.Node = publishFeed(s.Node, "pods", &st.Pods)
	}
	if st.Slices != nil {
		s.Node = publishFeed(s.Node, "slices", st.Slices)
	}
	if st.Claims != nil {
		s.Node = publishFeed(s.Node, "claims", st.Claims)
	}
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

// publishFeed adds the state of one kind of objects.
func publishFeed(r []collector.Reading, objects string, st *kube.FeedStatus) []collector.Reading {
	add := func(m *collector.Metric, v float64, labels ...string) {
		r = append(r, collector.Reading{Metric: m, Labels: labels, Value: v})
	}
	for _, state := range kube.States {
		add(collector.PodmetaState, boolean(st.State == state), objects, string(state))
	}
	if !st.LastMessage.IsZero() {
		add(collector.PodmetaAge, max(st.Age, time.Duration(0)).Seconds(), objects)
	}
	return r
}
