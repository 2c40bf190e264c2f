// Package kube gives the remediator access to a Kubernetes cluster. It is the
// only package of this project that uses client-go.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// Cluster implements remediation.Cluster. It watches the nodes and the devices of DRA
// drivers, and reads or changes everything else with one request each.
type Cluster struct {
	client kubernetes.Interface
	// namespace is that of the remediator, in which it creates Jobs.
	namespace string
	exporters Exporters
	nodes     cache.SharedIndexInformer
	devices   *devices
	valid     func() (until time.Time, err error)
	jobs      atomic.Pointer[map[string]*batchv1.Job]
}

// component names the program in Events and managed fields.
const component = "accel-remediator"

// requestTimeout bounds each request but the list and the watch of the nodes. A
// pass sends its requests one after the other, so none may block it.
const requestTimeout = 10 * time.Second

// New returns a Cluster. valid returns until when this process may change the
// cluster. ring is called when a part of a node changes that a plan depends on.
func New(client kubernetes.Interface, namespace string, exporters Exporters, valid func() (until time.Time, err error), ring func()) (*Cluster, error) {
	c := &Cluster{client: client, namespace: namespace, exporters: exporters, valid: valid, nodes: newInformer(client)}
	c.jobs.Store(&map[string]*batchv1.Job{})
	var err error
	if c.devices, err = newDevices(client, ring); err != nil {
		return nil, err
	}
	_, err = c.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
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

// Run watches the nodes, and the devices when they are wanted, until ctx is done.
func (c *Cluster) Run(ctx context.Context) {
	var watches sync.WaitGroup
	watches.Go(func() { c.nodes.RunWithContext(ctx) })
	select {
	case <-c.devices.wanted:
		watches.Go(func() { c.devices.slices.RunWithContext(ctx) })
		watches.Go(func() { c.devices.rules.RunWithContext(ctx) })
	case <-ctx.Done():
	}
	watches.Wait()
}

// Synced waits for the first list of the nodes. It returns false if ctx is done
// before.
func (c *Cluster) Synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.nodes.HasSynced)
}

// Nodes implements remediation.Cluster. The list is empty before Synced returns.
func (c *Cluster) Nodes() []remediation.Node {
	list := c.nodes.GetStore().List()
	nodes := make([]remediation.Node, 0, len(list))
	for _, n := range list {
		nodes = append(nodes, plain(n.(*corev1.Node)))
	}
	return nodes
}

// change calls send, which changes the cluster by one request, if this process
// may act. A request that fails is not repeated: the next pass plans from its
// result.
func (c *Cluster) change(ctx context.Context, send func(context.Context) error) error {
	until, err := c.valid()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return send(ctx)
}

// patchNode sends a patch of a node. A typed update would lose the fields that a
// newer API server has.
func (c *Cluster) patchNode(ctx context.Context, name string, kind types.PatchType, patch any, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return c.change(ctx, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Nodes().Patch(ctx, name, kind, data, metav1.PatchOptions{FieldManager: component}, subresources...)
		return err
	})
}

// Patch implements remediation.Cluster. Because of the version, the API server
// refuses a patch of a node that has changed since.
func (c *Cluster) Patch(ctx context.Context, n *remediation.Node, p *remediation.Patch) error {
	if n.Device != nil {
		return c.patchRule(ctx, n, p)
	}
	metadata := map[string]any{"resourceVersion": p.Version}
	if len(p.Labels) > 0 {
		metadata["labels"] = p.Labels
	}
	if len(p.Annotations) > 0 {
		metadata["annotations"] = p.Annotations
	}
	spec := map[string]any{}
	if p.Taints != nil {
		spec["taints"] = c.taints(n.Name, *p.Taints)
	}
	if p.Unschedulable != nil {
		spec["unschedulable"] = *p.Unschedulable
	}
	patch := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	err := c.patchNode(ctx, n.Name, types.MergePatchType, patch)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", remediation.ErrConflict, err)
	}
	return err
}

// SetCondition implements remediation.Cluster.
func (c *Cluster) SetCondition(ctx context.Context, name string, to remediation.Condition) error {
	now := metav1.Now()
	next := corev1.NodeCondition{
		Type: remediation.ConditionType, Status: corev1.ConditionStatus(to.Status), Reason: to.Reason, Message: to.Message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if was := condition(c.node(name), remediation.ConditionType); was != nil && was.Status == next.Status {
		next.LastTransitionTime = was.LastTransitionTime // changes with the status only
	}
	patch := map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{next}}}
	return c.patchNode(ctx, name, types.StrategicMergePatchType, patch, "status")
}

const (
	// watchTime is how long the API server keeps a list or a watch of the nodes.
	watchTime = 2 * time.Minute
	// longestRequest bounds every request on the client's side. A watch whose
	// connection is dead ends after it, and the nodes are listed again.
	longestRequest = watchTime + 30*time.Second
)

// NewClient returns a client of the API server. Its requests end after
// longestRequest at the latest and are never repeated.
func NewClient(cfg *rest.Config) (kubernetes.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = component
	cfg.QPS, cfg.Burst = 20, 40
	cfg.Timeout = longestRequest
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	return kubernetes.NewForConfig(cfg)
}

// once removes Retry-After from answers, because client-go repeats a request for
// it. The next pass plans from the result instead. An eviction that a disruption
// budget refuses would use up its timeout otherwise.
type once struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go cancel a request.
func (o once) WrappedRoundTripper() http.RoundTripper { return o.next }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err == nil {
		resp.Header.Del("Retry-After")
	}
	return resp, err
}
