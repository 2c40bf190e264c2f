// Package kube is Kubernetes as the remediator needs it: the one place of this
// project that knows client-go.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// Cluster implements remediation.Cluster. Nodes are watched; all else is asked
// or changed by one request each.
type Cluster struct {
	client rest.Interface
	// namespace is that of the remediator, in which Jobs are made.
	namespace string
	nodes     cache.Store
	watch     cache.Controller
	held      func() (until time.Time, err error)
	jobs      atomic.Pointer[map[string]*batchv1.Job]
}

// source is who changes and tells, as Kubernetes shows it.
const source = "accel-remediator"

// requestTimeout bounds each request but the watch. A pass makes one after the
// other, so one that hangs must not take the pass.
const requestTimeout = 10 * time.Second

// New returns a Cluster. held says until when this process may change
// something, and ring is called when something of a node changes that a plan
// may rest on.
func New(client rest.Interface, namespace string, held func() (until time.Time, err error), ring func()) *Cluster {
	c := &Cluster{client: client, namespace: namespace, held: held}
	c.jobs.Store(&map[string]*batchv1.Job{})
	c.nodes, c.watch = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{ListWithContextFunc: c.list, WatchFuncWithContext: c.follow},
		ObjectType:    &node{}, Transform: slim,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { ring() },
			UpdateFunc: func(was, is any) {
				if changed(was.(*node), is.(*node)) {
					ring()
				}
			},
			DeleteFunc: func(any) { ring() },
		},
	})
	return c
}

// Run watches the nodes until ctx is done.
func (c *Cluster) Run(ctx context.Context) { c.watch.RunWithContext(ctx) }

// Synced waits until all nodes are listed; it is false where ctx is done first.
func (c *Cluster) Synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.watch.HasSynced)
}

// Nodes implements remediation.Cluster.
func (c *Cluster) Nodes(context.Context) ([]remediation.Node, error) {
	if !c.watch.HasSynced() {
		return nil, errors.New("the API server has not listed the nodes yet")
	}
	list := c.nodes.List()
	nodes := make([]remediation.Node, 0, len(list))
	for _, n := range list {
		nodes = append(nodes, n.(*node).plain())
	}
	return nodes, nil
}

// send sends a request that changes something. One that fails is not repeated
// here: the next pass sees what came of it, and decides anew.
func (c *Cluster) send(ctx context.Context, r *rest.Request, body any) error {
	until, err := c.held()
	if err != nil {
		return err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return r.MaxRetries(0).Body(data).Do(ctx).Error()
}

// get reads an object.
func (c *Cluster) get(ctx context.Context, r *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return decode(r.MaxRetries(0).Do(ctx), into)
}

func decode(r rest.Result, into any) error {
	data, err := r.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
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
	request := c.client.Patch(types.MergePatchType).Resource("nodes").Name(node).Param("fieldManager", source)
	err := c.send(ctx, request, patch)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", remediation.ErrConflict, err)
	}
	return err
}

// SetCondition implements remediation.Cluster.
func (c *Cluster) SetCondition(ctx context.Context, name string, to remediation.Condition) error {
	now := metav1.Now()
	condition := corev1.NodeCondition{
		Type: remediation.ConditionType, Status: corev1.ConditionStatus(to.Status), Reason: to.Reason, Message: to.Message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if known, ok, _ := c.nodes.GetByKey(name); ok {
		if was := known.(*node).condition(); was != nil && was.Status == condition.Status {
			condition.LastTransitionTime = was.LastTransitionTime // of the status, not of the reason
		}
	}
	patch := map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{condition}}}
	request := c.client.Patch(types.StrategicMergePatchType).Resource("nodes").Name(name).SubResource("status").Param("fieldManager", source)
	return c.send(ctx, request, patch)
}

// gone reports whether an error says that what was to be changed is not there,
// or about to go with its namespace.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// existed reports whether an error says that what was to be made is there.
func existed(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonAlreadyExists
}
