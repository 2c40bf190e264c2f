package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

func (c *Cluster) pod(ctx context.Context, p *remediation.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
}

// Exporters are the pods of the exporter.
type Exporters struct {
	Namespace string
	// Selector has their labels; empty if they are no pods.
	Selector string
}

// Exporters returns the addresses of the exporters of a node.
func (c *Cluster) Exporters(ctx context.Context, node string) (addresses []string, err error) {
	if c.exporters.Selector == "" {
		if n := c.node(node); n != nil && len(n.Status.Addresses) > 0 {
			addresses = append(addresses, n.Status.Addresses[0].Address)
		}
		return addresses, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pods, err := c.client.CoreV1().Pods(c.exporters.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: c.exporters.Selector, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.PodIP != "" && runsOn(p, node) {
			addresses = append(addresses, p.Status.PodIP)
		}
	}
	return addresses, nil
}

// runsOn reports whether the pod is on the node and is not about to leave it.
func runsOn(p *corev1.Pod, node string) bool {
	return p.Spec.NodeName == node && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// later reports whether the pod was created after an alert began, so that it is
// a later pod of the same name.
func later(p *corev1.Pod, than time.Time) bool {
	return p.CreationTimestamp.After(than.Add(time.Second)) // it has whole seconds
}

// restarts reports whether an eviction has no effect: the DaemonSet of the pod,
// or the kubelet for a static pod, starts it again on any tainted node.
func restarts(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}

// Note implements remediation.Cluster.
func (c *Cluster) Note(ctx context.Context, n *remediation.Note) error {
	// kubectl describe finds the Events of a node by its name as the UID.
	about := corev1.ObjectReference{Kind: "Node", Name: n.Node.Name, UID: types.UID(n.Node.Name), APIVersion: "v1"}
	namespace := metav1.NamespaceDefault // of the Events of cluster-scoped objects
	if n.Pod.Name != "" {
		about = corev1.ObjectReference{Kind: "Pod", Namespace: n.Pod.Namespace, Name: n.Pod.Name, APIVersion: "v1"}
		namespace = n.Pod.Namespace
		pod, err := c.pod(ctx, &n.Pod)
		switch {
		case err == nil && !later(pod, n.Pod.Before):
			about.UID = pod.UID // kubectl describe requires it
		case err != nil && !apierrors.IsNotFound(err):
			return err
		}
	}
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(n.Time)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: component + "." + n.Key, Namespace: namespace},
		InvolvedObject: about, Type: kind, Reason: n.Reason, Message: n.Message,
		Source: corev1.EventSource{Component: component}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
		ReportingController: component, ReportingInstance: component, Action: n.Reason, EventTime: metav1.NewMicroTime(n.Time),
	}
	err := c.change(ctx, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: component})
		return err
	})
	// A pod may be gone, and its namespace with it.
	gone := n.Pod.Name != "" && (apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause))
	if apierrors.IsAlreadyExists(err) || gone {
		return nil
	}
	return err
}

// Evict implements remediation.Cluster.
func (c *Cluster) Evict(ctx context.Context, node string, p *remediation.Pod) (remediation.Eviction, error) {
	pod, err := c.pod(ctx, p)
	switch {
	case apierrors.IsNotFound(err):
		return remediation.EvictGone, nil
	case err != nil:
		return "", err
	case !runsOn(pod, node), later(pod, p.Before):
		return remediation.EvictGone, nil
	case restarts(pod):
		return remediation.EvictKept, nil
	}
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
	}
	err = c.change(ctx, func(ctx context.Context) error {
		return c.client.PolicyV1().Evictions(p.Namespace).Evict(ctx, eviction)
	})
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

// keepJob is for how many seconds a finished Job is kept if its manifest does not
// set this, so that its log can be read.
const keepJob int32 = 24 * 60 * 60

// SetJobs puts the manifests of a policy into force, by their file names.
func (c *Cluster) SetJobs(jobs map[string]*batchv1.Job) { c.jobs.Store(&jobs) }

// MakeJob implements remediation.Cluster. The name of the Job is made from the
// key of the call, so each call has one Job, however often it is repeated.
func (c *Cluster) MakeJob(ctx context.Context, file string, call *remediation.Call) error {
	manifest := (*c.jobs.Load())[file]
	if manifest == nil {
		return fmt.Errorf("%s: no manifest of this name is in force", file)
	}
	if call.Claim != nil {
		if err := c.makeClaim(ctx, call); err != nil {
			return err
		}
	}
	err := c.change(ctx, func(ctx context.Context) error {
		_, err := c.client.BatchV1().Jobs(c.namespace).Create(ctx, jobFor(manifest, c.namespace, call), metav1.CreateOptions{FieldManager: component})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func jobName(call *remediation.Call) string {
	sum := sha256.Sum256([]byte(call.Key))
	return "accel-" + call.Hook + "-" + hex.EncodeToString(sum[:8])
}

// jobFor returns the Job of a call. It runs on the node despite all taints. The
// environment of its containers describes the call.
func jobFor(manifest *batchv1.Job, namespace string, call *remediation.Call) *batchv1.Job {
	job := manifest.DeepCopy()
	job.Name, job.GenerateName, job.Namespace = jobName(call), "", namespace
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "accel.health/node", call.Node)
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "accel.health/key", call.Key)
	if job.Spec.TTLSecondsAfterFinished == nil {
		ttl := keepJob
		job.Spec.TTLSecondsAfterFinished = &ttl
	}
	pod := &job.Spec.Template.Spec
	if call.Claim != nil {
		claimDevice(job)
	} else {
		pod.NodeName = call.Node
	}
	pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	env := []corev1.EnvVar{
		{Name: "ACCEL_NODE", Value: call.Node},
		{Name: "ACCEL_ALERTS", Value: strings.Join(call.Alerts, ",")},
		{Name: "ACCEL_DEVICES", Value: strings.Join(call.Devices, ",")},
		{Name: "ACCEL_KEY", Value: call.Key},
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = slices.Concat(containers[i].Env, env)
		}
	}
	return job
}
