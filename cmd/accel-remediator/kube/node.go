package kube

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// newInformer returns an informer of the nodes.
func newInformer(client kubernetes.Interface) cache.SharedIndexInformer {
	seconds := int64(watchTime / time.Second)
	nodes := coreinformers.NewFilteredNodeInformer(client, 0, nil, func(o *metav1.ListOptions) { o.TimeoutSeconds = &seconds })
	_ = nodes.SetTransform(slim) // fails only after the start
	return nodes
}

// annotations are the annotations of a node that a plan depends on.
var annotations = []string{remediation.RecordAnnotation, remediation.HistoryAnnotation, remediation.HoldAnnotation, remediation.InspectAnnotation, remediation.ReturnedAnnotation, remediation.AdmitAnnotation}

// slim removes what no plan depends on, such as images: for a
// thousand nodes it is tens of megabytes.
func slim(object any) (any, error) {
	if s, ok := object.(*resourcev1.ResourceSlice); ok {
		slimSlice(s)
	}
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	n.ManagedFields = nil
	maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return !slices.Contains(annotations, key) })
	n.Status = corev1.NodeStatus{Addresses: slices.DeleteFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type != corev1.NodeInternalIP
	}), Conditions: slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type != remediation.ConditionType && c.Type != corev1.NodeReady
	})}
	return n, nil
}

// node returns a node as it was observed last, nil if it is unknown.
func (c *Cluster) node(name string) *corev1.Node {
	if known, ok, _ := c.nodes.GetStore().GetByKey(name); ok {
		return known.(*corev1.Node)
	}
	return nil
}

// condition returns a condition of a node, nil if there is none.
func condition(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &n.Status.Conditions[i]
}

// taints returns taints for a patch, which replaces the list as a whole. A taint
// that the node has already keeps the time at which it was added.
func (c *Cluster) taints(node string, list []remediation.Taint) []corev1.Taint {
	var before []corev1.Taint
	if n := c.node(node); n != nil {
		before = n.Spec.Taints
	}
	taints := []corev1.Taint{}
	for _, t := range list {
		taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		if i := slices.IndexFunc(before, func(b corev1.Taint) bool { return b.MatchTaint(&taint) }); i >= 0 {
			taint.TimeAdded = before[i].TimeAdded
		}
		taints = append(taints, taint)
	}
	return taints
}

// changed reports whether a plan may differ. A kubelet reports other parts of
// its node every few seconds.
func changed(was, is *corev1.Node) bool {
	a, b := plain(was), plain(is)
	return a.UID != b.UID || a.Unschedulable != b.Unschedulable || a.NotReady != b.NotReady || a.Condition != b.Condition ||
		!slices.Equal(a.Taints, b.Taints) || !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
}

// plain converts a node for the planner.
func plain(n *corev1.Node) remediation.Node {
	p := remediation.Node{
		Name: n.Name, UID: string(n.UID), Version: n.ResourceVersion,
		Labels: n.Labels, Annotations: n.Annotations, Unschedulable: n.Spec.Unschedulable,
	}
	for _, t := range n.Spec.Taints {
		p.Taints = append(p.Taints, remediation.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	if c := condition(n, corev1.NodeReady); c != nil {
		p.NotReady = c.Status != corev1.ConditionTrue
	}
	if c := condition(n, remediation.ConditionType); c != nil {
		p.Condition = remediation.Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
	}
	return p
}
