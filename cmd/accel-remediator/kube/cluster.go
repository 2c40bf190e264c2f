// Package kube is Kubernetes as the remediator needs it: the one place of this
// project that knows client-go.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/accel-exporter/accel-exporter/remediation"
)

// Cluster implements remediation.Cluster.
type Cluster struct {
	client kubernetes.Interface
	// namespace is that of the remediator, in which Jobs are made.
	namespace string
	nodes     listers.NodeLister
	factory   informers.SharedInformerFactory
	synced    cache.InformerSynced
}

// source is who changes and tells, as Kubernetes shows it.
const source = "accel-remediator"

// New returns a Cluster. ring is called when something of a node changes that a
// plan may rest on.
func New(client kubernetes.Interface, namespace string, ring func()) (*Cluster, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	nodes := factory.Core().V1().Nodes()
	c := &Cluster{client: client, namespace: namespace, nodes: nodes.Lister(), factory: factory, synced: nodes.Informer().HasSynced}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { ring() },
		UpdateFunc: func(was, is any) {
			if changed(was.(*corev1.Node), is.(*corev1.Node)) {
				ring()
			}
		},
		DeleteFunc: func(any) { ring() },
	})
	return c, err
}

// slim keeps of a node what is used: a thousand nodes with their images and
// addresses are tens of megabytes.
func slim(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels},
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable},
	}
	for _, key := range []string{remediation.RecordAnnotation, remediation.HistoryAnnotation, remediation.HoldAnnotation, remediation.InspectAnnotation} {
		if v, ok := n.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, v)
		}
	}
	if condition := find(n); condition != nil {
		kept.Status.Conditions = []corev1.NodeCondition{*condition}
	}
	return kept, nil
}

// changed leaves out what a kubelet reports every few seconds.
func changed(was, is *corev1.Node) bool {
	a, b := *was, *is
	a.ResourceVersion, b.ResourceVersion = "", ""
	x, errX := json.Marshal(&a)
	y, errY := json.Marshal(&b)
	return errX != nil || errY != nil || string(x) != string(y)
}

func find(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == remediation.ConditionType {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// Run watches the nodes until ctx is done.
func (c *Cluster) Run(ctx context.Context) {
	c.factory.StartWithContext(ctx)
	<-ctx.Done()
	c.factory.Shutdown()
}

// Synced waits until the nodes are known.
func (c *Cluster) Synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.synced)
}

// Nodes implements remediation.Cluster. It asks nobody.
func (c *Cluster) Nodes(context.Context) ([]remediation.Node, error) {
	if !c.synced() {
		return nil, fmt.Errorf("the API server has not listed the nodes yet")
	}
	list, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	nodes := make([]remediation.Node, 0, len(list))
	for _, n := range list {
		node := remediation.Node{
			Name: n.Name, UID: string(n.UID), Version: n.ResourceVersion,
			Labels: n.Labels, Annotations: n.Annotations, Unschedulable: n.Spec.Unschedulable,
		}
		for _, t := range n.Spec.Taints {
			node.Taints = append(node.Taints, remediation.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
		if condition := find(n); condition != nil {
			node.Condition = remediation.Condition{Status: string(condition.Status), Reason: condition.Reason, Message: condition.Message}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// Patch implements remediation.Cluster. The version makes the API server
// refuse a patch that rests on an older node.
func (c *Cluster) Patch(ctx context.Context, node string, p *remediation.Patch) error {
	metadata := map[string]any{"resourceVersion": p.Version}
	if len(p.Labels) > 0 {
		metadata["labels"] = p.Labels
	}
	if len(p.Annotations) > 0 {
		metadata["annotations"] = p.Annotations
	}
	patch, spec := map[string]any{"metadata": metadata}, map[string]any{}
	if p.Taints != nil {
		taints := []corev1.Taint{}
		for _, t := range *p.Taints {
			taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		}
		spec["taints"] = taints
	}
	if p.Unschedulable != nil {
		spec["unschedulable"] = *p.Unschedulable
	}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, data, metav1.PatchOptions{FieldManager: source})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", remediation.ErrConflict, err)
	}
	return err
}

// SetCondition implements remediation.Cluster.
func (c *Cluster) SetCondition(ctx context.Context, node string, to remediation.Condition) error {
	now := metav1.Now()
	data, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: remediation.ConditionType, Status: corev1.ConditionStatus(to.Status), Reason: to.Reason, Message: to.Message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().PatchStatus(ctx, node, data)
	return err
}

// Note implements remediation.Cluster.
func (c *Cluster) Note(ctx context.Context, n *remediation.Note) error {
	about := corev1.ObjectReference{Kind: "Node", Name: n.Node.Name, UID: types.UID(n.Node.Name), APIVersion: "v1"}
	namespace := metav1.NamespaceDefault // where Events of what has no namespace are
	if n.Pod.Name != "" {
		about = corev1.ObjectReference{Kind: "Pod", Namespace: n.Pod.Namespace, Name: n.Pod.Name, APIVersion: "v1"}
		namespace = n.Pod.Namespace
		if pod, err := c.client.CoreV1().Pods(namespace).Get(ctx, n.Pod.Name, metav1.GetOptions{}); err == nil {
			about.UID = pod.UID // kubectl describe finds Events by it
		}
	}
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(n.Time)
	_, err := c.client.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: source + "." + n.Key, Namespace: namespace},
		InvolvedObject: about, Type: kind, Reason: n.Reason, Message: n.Message,
		Source: corev1.EventSource{Component: source}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
		ReportingController: source, ReportingInstance: source, Action: n.Reason, EventTime: metav1.NewMicroTime(n.Time),
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && n.Pod.Name != "" {
		return nil // the namespace may be gone with its pods
	}
	return err
}

// Evict implements remediation.Cluster.
func (c *Cluster) Evict(ctx context.Context, node string, p *remediation.Pod) (remediation.Eviction, error) {
	pod, err := c.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return remediation.EvictGone, nil
	case err != nil:
		return "", err
	case pod.Spec.NodeName != node || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return remediation.EvictGone, nil
	case pod.CreationTimestamp.After(p.Before.Add(time.Second)): // it has whole seconds
		return remediation.EvictOther, nil
	}
	err = c.client.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
	})
	switch {
	case apierrors.IsTooManyRequests(err):
		return remediation.EvictBudget, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return remediation.EvictGone, nil
	case err != nil:
		return "", err
	}
	return remediation.Evicted, nil
}
