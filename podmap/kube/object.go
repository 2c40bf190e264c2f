package kube

import (
	"cmp"
	"path"
	"slices"
	"time"
)

// Bounds of what is kept of an object, in bytes: the API's own limits of names
// and UIDs, and more than the API uses of versions.
const (
	maxName    = 253
	maxUID     = 128
	maxVersion = 128
	maxWord    = 128
	maxMessage = 300
	// maxContext is for a trace context: 55 for W3C's traceparent, and room for
	// an object around it with a tracestate of 512.
	maxContext = 1024
	// maxToken is for the continue token of a list, which has a key in it.
	maxToken = 4 << 10
)

// object is a Pod or a ResourceSlice, reduced to what is kept and bounded.
type object struct {
	kind, version   string
	namespace, name string
	uid             string
	created         time.Time
	labels          map[string]string // the allowed labels; nil without any
	templateHashes  map[string]string // by label: the values of templateLabels
	context         string            // of a trace
	controller      Workload
	node            string
	driver, pool    string
	generation      int64
	slices          int64 // of the pool, in all
	devices         []Device
	// malformed and overflow are for the counts of FeedStatus.
	malformed, overflow int
}

// keep reduces a document to what is kept. Labels outside allow and annotations
// outside contexts are dropped. A text beyond its bound becomes empty.
func keep(d *document, allow allowList, contexts []string) *object {
	m := &d.Metadata
	o := &object{
		kind: short(d.Kind, maxWord), version: short(m.ResourceVersion, maxVersion),
		namespace: short(m.Namespace, maxName), name: short(m.Name, maxName),
		uid: short(m.UID, maxUID), created: timeOf(m.CreationTimestamp), node: short(d.Spec.NodeName, maxName),
		driver: short(d.Spec.Driver, maxName), pool: short(d.Spec.Pool.Name, maxName),
		generation: d.Spec.Pool.Generation, slices: d.Spec.Pool.ResourceSliceCount,
	}
	o.keepLabels(m.Labels, allow)
	o.keepContext(m.Annotations, contexts)
	for _, owner := range m.OwnerReferences {
		w := Workload{Kind: short(owner.Kind, maxWord), Name: short(owner.Name, maxName)}
		if owner.Controller && w.Kind != "" && w.Name != "" {
			o.controller = w
		}
	}
	o.keepDevices(d.Spec.Devices)
	return o
}

func short(s string, limit int) string {
	if len(s) > limit {
		return ""
	}
	return s
}

func timeOf(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s) // zero for anything else
	return t.UTC()
}

// keepLabels keeps the labels that are allowed, and the hashes that lead to a
// workload. Of more than maxLabels labels, labels that match the earlier patterns are
// kept.
func (o *object) keepLabels(labels map[string]string, allow allowList) {
	type label struct {
		rank int
		key  string
	}
	var allowed []label
	for key, value := range labels {
		_, hash := templateLabels[key]
		rank, ok := allow.rank(key)
		switch {
		case !hash && !ok:
			continue
		case len(value) > maxLabelValue:
			o.malformed++
			continue
		}
		if hash {
			if o.templateHashes == nil {
				o.templateHashes = map[string]string{}
			}
			o.templateHashes[key] = value
		}
		if ok {
			allowed = append(allowed, label{rank, key})
		}
	}
	if len(allowed) > maxLabels {
		slices.SortFunc(allowed, func(a, b label) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.key, b.key)) })
		o.overflow += len(allowed) - maxLabels
		allowed = allowed[:maxLabels]
	}
	for _, l := range allowed {
		if o.labels == nil {
			o.labels = map[string]string{}
		}
		o.labels[l.key] = labels[l.key]
	}
}

// keepContext keeps the first annotation of contexts that the pod has.
func (o *object) keepContext(annotations map[string]string, contexts []string) {
	for _, key := range contexts {
		switch value := annotations[key]; {
		case len(value) > maxContext:
			o.malformed++
		case value != "":
			o.context = value
			return
		}
	}
}

// maxLabels is how many labels are kept of one pod.
const maxLabels = 32

// maxLabelValue is the longest label value that the API server accepts, in
// bytes.
const maxLabelValue = 63

// allowList has the patterns of the labels that are kept.
type allowList []string

// rank returns the index of the first pattern that key matches, or false
// without a match.
func (l allowList) rank(key string) (int, bool) {
	if key == "" || len(key) > maxLabelKey {
		return 0, false
	}
	i := slices.IndexFunc(l, func(pattern string) bool {
		ok, err := path.Match(pattern, key)
		return ok && err == nil
	})
	return i, i >= 0
}
