package compat

import (
	"slices"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// pod names a pod.
type pod struct{ namespace, name string }

// podFacts are the UID and labels of a pod from the API server.
type podFacts struct {
	uid    string
	labels []exposition.Label // names are sanitised
}

// podsOf returns the pods in the node's readings, with the selected labels.
func podsOf(node []collector.Reading, selected func(string) bool) map[pod]*podFacts {
	pods := map[pod]*podFacts{}
	of := func(r *collector.Reading) *podFacts {
		k := pod{r.Label("namespace"), r.Label("pod")}
		if pods[k] == nil {
			pods[k] = &podFacts{}
		}
		return pods[k]
	}
	for i := range node {
		r := &node[i]
		switch r.Metric {
		case collector.PodInfo:
			of(r).uid = r.Label("uid")
		case collector.PodLabelInfo:
			if selected == nil || !selected(r.Label("label")) {
				continue
			}
			f := of(r)
			f.labels = append(f.labels, exposition.Label{Name: sanitise(r.Label("label")), Value: r.Label("value")})
		}
	}
	return pods
}

// sanitise converts a Kubernetes label name to a Prometheus label name.
func sanitise(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' || strings.HasPrefix(clean, "__") {
		return "label_" + clean
	}
	return clean
}

// holder is a pod that a unit is allocated to.
type holder struct {
	pod
	container string
	labels    []string // the labels of the allocation's readings
}

// holdersOf returns the pods that a device is allocated to.
func holdersOf(d *collector.Device) []holder {
	var out []holder
	for i := range d.Readings {
		r := &d.Readings[i]
		if r.Metric == collector.AllocationInfo {
			out = append(out, holder{pod{r.Label("namespace"), r.Label("pod")}, r.Label("container"), r.Labels})
		}
	}
	return out
}

// addPod adds the labels of a pod.
func (p *page) addPod(s *set, h *holder) {
	o, n := &p.view.options, &p.view.names
	if !o.Pods {
		return
	}
	s.add(n.pod, h.name)
	s.add(n.namespace, h.namespace)
	s.add(n.container, h.container)
	f := p.pods[h.pod]
	if f == nil {
		return
	}
	if o.PodUID {
		s.add("pod_uid", f.uid)
	}
	for _, l := range f.labels {
		if !reserved[l.Name] {
			s.add(l.Name, l.Value)
		}
	}
}

// byHolder are the fields that are measured for each pod of a shared device, by
// field id.
var byHolder = sync.OnceValue(func() map[uint16]source {
	out := map[uint16]source{}
	for name, s := range map[string]source{
		"DCGM_FI_DEV_GPU_UTIL":       times(100, collector.AllocationUtilization),
		"DCGM_FI_DEV_GPU_UTIL_RATIO": times(1, collector.AllocationUtilization),
		"DCGM_FI_DEV_FB_USED":        times(1./mebi, collector.AllocationMemory),
		"DCGM_FI_DEV_FB_USED_BYTES":  times(1, collector.AllocationMemory),
	} {
		f, _ := dcgmfield.ByName(name)
		out[f.ID] = s
	}
	return out
})

// holders adds the values that are measured for each pod of a shared unit.
func (p *page) holders(out []exposition.Derived, f *family, u *unit) []exposition.Derived {
	s, ok := byHolder()[f.row.Field.ID]
	if !ok || len(u.holders) < 2 || !p.view.options.Pods {
		return out
	}
	rows, weights := u.rows(&s)
	for i, row := range rows {
		at := slices.IndexFunc(u.holders, func(h holder) bool { return slices.Equal(h.labels, u.device.Readings[row].Labels) })
		if at < 0 {
			continue
		}
		labels := p.identity(u)
		p.addPod(&labels, &u.holders[at])
		out = f.add(out, labels, &s, weights[i:i+1], u.values(row))
	}
	return out
}
