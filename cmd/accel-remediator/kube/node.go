package kube

import (
	"context"
	"maps"
	"slices"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// node is what is decoded of a Node. Images, addresses and volumes of a
// thousand nodes are tens of megabytes, so they are not even decoded.
type node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Taints        []corev1.Taint `json:"taints"`
		Unschedulable bool           `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Conditions []corev1.NodeCondition `json:"conditions"`
	} `json:"status"`
}

type nodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []node `json:"items"`
}

// DeepCopyObject implements runtime.Object. Nothing of a node is changed in
// place, so a flat copy does.
func (n *node) DeepCopyObject() runtime.Object { c := *n; return &c }

// DeepCopyObject implements runtime.Object.
func (l *nodeList) DeepCopyObject() runtime.Object { c := *l; return &c }

const (
	// listTimeout bounds a list of all nodes.
	listTimeout = time.Minute
	// watchTime is how long the API server is asked to keep a watch, and watchGrace
	// how much later one is given up that is still there: its connection may be
	// dead, and nodes would be known as they were long ago.
	watchTime  = 2 * time.Minute
	watchGrace = 30 * time.Second
)

// list lists the nodes.
func (c *Cluster) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	nodes := new(nodeList)
	return nodes, c.client.Get().Resource("nodes").VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(nodes)
}

// follow watches the nodes.
func (c *Cluster) follow(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	seconds := int64(watchTime / time.Second)
	o.Watch, o.TimeoutSeconds = true, &seconds
	ctx, cancel := context.WithTimeout(ctx, watchTime+watchGrace)
	w, err := c.client.Get().Resource("nodes").VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return &bounded{w, cancel}, nil
}

// bounded is a watch that ends at a time.
type bounded struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop implements watch.Interface; who watches calls it in any case.
func (b *bounded) Stop() {
	b.cancel()
	b.Interface.Stop()
}

// slim keeps of a node what is used.
func slim(object any) (any, error) {
	n, ok := object.(*node)
	if !ok {
		return object, nil
	}
	kept := &node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion}}
	kept.Labels = make(map[string]string, len(n.Labels))
	for key, value := range n.Labels { // of which nodes have dozens, mostly the same
		kept.Labels[unique.Make(key).Value()] = unique.Make(value).Value()
	}
	kept.Spec = n.Spec
	for _, key := range []string{remediation.RecordAnnotation, remediation.HistoryAnnotation, remediation.HoldAnnotation, remediation.InspectAnnotation} {
		if v, ok := n.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, v)
		}
	}
	if condition := n.condition(); condition != nil {
		kept.Status.Conditions = []corev1.NodeCondition{*condition}
	}
	return kept, nil
}

// condition returns the one that is of ours, nil where there is none.
func (n *node) condition() *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == remediation.ConditionType {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// changed leaves out what a kubelet reports every few seconds.
func changed(was, is *node) bool {
	a, b := was.plain(), is.plain()
	return a.UID != b.UID || a.Unschedulable != b.Unschedulable || a.Condition != b.Condition ||
		!slices.Equal(a.Taints, b.Taints) || !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
}

// plain is the node as plans are made of it.
func (n *node) plain() remediation.Node {
	p := remediation.Node{
		Name: n.Name, UID: string(n.UID), Version: n.ResourceVersion,
		Labels: n.Labels, Annotations: n.Annotations, Unschedulable: n.Spec.Unschedulable,
	}
	for _, t := range n.Spec.Taints {
		p.Taints = append(p.Taints, remediation.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	if c := n.condition(); c != nil {
		p.Condition = remediation.Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
	}
	return p
}
