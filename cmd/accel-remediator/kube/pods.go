package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// pod is what is decoded of a Pod.
type pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

func (c *Cluster) pod(ctx context.Context, p *remediation.Pod) (*pod, error) {
	found := new(pod)
	return found, c.get(ctx, c.client.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name), found)
}

// here reports whether the pod is on the node and not about to leave it.
func (p *pod) here(node string) bool {
	return p.Spec.NodeName == node && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// later reports whether the pod is not the one that an alert names, but one of
// that name that was made after the alert began.
func (p *pod) later(than time.Time) bool {
	return p.CreationTimestamp.After(than.Add(time.Second)) // it has whole seconds
}

// comesBack reports whether an eviction would be in vain: its DaemonSet, or the
// kubelet from a file, starts such a pod again, whatever the node's taints.
func (p *pod) comesBack() bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}

// Note implements remediation.Cluster.
func (c *Cluster) Note(ctx context.Context, n *remediation.Note) error {
	// kubectl describe finds a node's Events by a UID that is its name.
	about := corev1.ObjectReference{Kind: "Node", Name: n.Node.Name, UID: types.UID(n.Node.Name), APIVersion: "v1"}
	namespace := metav1.NamespaceDefault // where Events of what has no namespace are
	if n.Pod.Name != "" {
		about = corev1.ObjectReference{Kind: "Pod", Namespace: n.Pod.Namespace, Name: n.Pod.Name, APIVersion: "v1"}
		namespace = n.Pod.Namespace
		pod, err := c.pod(ctx, &n.Pod)
		switch {
		case err == nil && !pod.later(n.Pod.Before):
			about.UID = pod.UID // without it the Event is not shown with the pod
		case err != nil && !apierrors.IsNotFound(err):
			return err
		}
	}
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(n.Time)
	err := c.send(ctx, c.client.Post().Namespace(namespace).Resource("events").Param("fieldManager", source), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: source + "." + n.Key, Namespace: namespace},
		InvolvedObject: about, Type: kind, Reason: n.Reason, Message: n.Message,
		Source: corev1.EventSource{Component: source}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
		ReportingController: source, ReportingInstance: source, Action: n.Reason, EventTime: metav1.NewMicroTime(n.Time),
	})
	if existed(err) || n.Pod.Name != "" && gone(err) {
		return nil
	}
	return err
}

// Evict implements remediation.Cluster.
func (c *Cluster) Evict(ctx context.Context, node string, p *remediation.Pod, dry bool) (remediation.Eviction, error) {
	pod, err := c.pod(ctx, p)
	switch {
	case apierrors.IsNotFound(err):
		return remediation.EvictGone, nil
	case err != nil:
		return "", err
	case !pod.here(node):
		return remediation.EvictGone, nil
	case pod.later(p.Before):
		return remediation.EvictOther, nil
	case pod.comesBack():
		return remediation.EvictKept, nil
	}
	eviction := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
	}
	request := c.client.Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction")
	if dry {
		request.Param("dryRun", metav1.DryRunAll)
	}
	err = c.send(ctx, request, eviction)
	switch {
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return remediation.EvictBudget, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return remediation.EvictGone, nil
	case err != nil:
		return "", err
	}
	return remediation.Evicted, nil
}
