package kube

import (
	"maps"
	"path"
	"slices"
	"time"
)

// Bounds of what a tenant can add to the series and the spans of its pods.
const (
	maxLabels = 32
	// maxContext is for a trace context: 55 bytes for W3C's traceparent, and room
	// for an object around it with a tracestate of 512.
	maxContext = 1024
)

// document is the part of a Pod or a ResourceSlice that is read.
type document struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		OwnerReferences   []owner           `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`

		// Of a ResourceSlice.
		Driver string `json:"driver"`
		Pool   struct {
			Name               string `json:"name"`
			Generation         int64  `json:"generation"`
			ResourceSliceCount int    `json:"resourceSliceCount"`
		} `json:"pool"`
		Devices []publishedDevice `json:"devices"`
	} `json:"spec"`
}

type owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// podStore has the pods of the node.
type podStore struct {
	opts *Options
	pods map[string]Pod // by UID
}

func (*podStore) kind() string { return "Pod" }

// put takes in a pod that was added or changed. A pod that has ended is one.
func (p *podStore) put(d *document) {
	if d.Metadata.UID != "" && d.Metadata.Name != "" && d.Spec.NodeName == p.opts.Node {
		p.pods[d.Metadata.UID] = p.read(d)
	}
}

// remove keeps the last state of a deleted pod.
func (p *podStore) remove(d *document, now time.Time) {
	p.put(d)
	p.retire(d.Metadata.UID, now)
}

func (p *podStore) retire(uid string, now time.Time) {
	if pod, ok := p.pods[uid]; ok && pod.Deleted.IsZero() {
		pod.Deleted = now
		p.pods[uid] = pod
	}
}

// replace takes in a complete list.
func (p *podStore) replace(list []document, now time.Time) {
	listed := map[string]bool{}
	for i := range list {
		listed[list[i].Metadata.UID] = true
		p.put(&list[i])
	}
	for uid := range p.pods {
		if !listed[uid] {
			p.retire(uid, now)
		}
	}
}

// forget drops the pods that were deleted before the given time, and reports
// whether there were any.
func (p *podStore) forget(before time.Time) bool {
	were := len(p.pods)
	maps.DeleteFunc(p.pods, func(_ string, pod Pod) bool { return !pod.Deleted.IsZero() && pod.Deleted.Before(before) })
	return len(p.pods) < were
}

// count returns the number of existing pods.
func (p *podStore) count() int {
	n := 0
	for _, pod := range p.pods {
		if pod.Deleted.IsZero() {
			n++
		}
	}
	return n
}

// read returns the fields of a pod that are kept.
func (p *podStore) read(d *document) Pod {
	m := &d.Metadata
	pod := Pod{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, Created: m.CreationTimestamp.UTC(),
		Labels: allowedLabels(m.Labels, p.opts.Labels), Context: contextOf(m.Annotations, p.opts.Contexts),
	}
	for _, owner := range m.OwnerReferences {
		if owner.Controller {
			pod.Controller = Workload{Kind: owner.Kind, Name: owner.Name}
		}
	}
	pod.Workload = workload(pod.Controller, m.Labels, pod.Created)
	return pod
}

// allowedLabels returns the labels that match a pattern. If there are too many,
// labels that match the earlier patterns are kept.
func allowedLabels(labels map[string]string, patterns []string) map[string]string {
	var kept map[string]string
	keys := slices.Sorted(maps.Keys(labels))
	for _, pattern := range patterns {
		for _, key := range keys {
			if ok, _ := path.Match(pattern, key); !ok || len(kept) == maxLabels {
				continue
			}
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = labels[key]
		}
	}
	return kept
}

// contextOf returns the first of the annotations that the pod has.
func contextOf(annotations map[string]string, keys []string) string {
	for _, key := range keys {
		if value := annotations[key]; value != "" && len(value) <= maxContext {
			return value
		}
	}
	return ""
}
