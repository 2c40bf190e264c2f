package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

const (
	// managedBy is the label of the rules of this program. No other rule is read,
	// changed or deleted.
	managedBy = "app.kubernetes.io/managed-by"
	ourRules  = managedBy + "=" + component
)

// devices watches the devices of DRA drivers, once a policy takes single devices out.
type devices struct {
	slices, rules cache.SharedIndexInformer
	wanted        chan struct{} // closed when they are to be watched
	watched       bool
	since         time.Time // of the first list
	// pools has the devices of each pool. The deletion of all slices of a pool does not
	// mean that its devices are gone: a kubelet that starts deletes the slices of its node.
	pools map[pool][]remediation.Published
}

type pool struct{ driver, name, node string }

func newDevices(client kubernetes.Interface, ring func()) (*devices, error) {
	seconds := int64(watchTime / time.Second)
	d := &devices{
		slices: resourceinformers.NewFilteredResourceSliceInformer(client, 0, nil, func(o *metav1.ListOptions) { o.TimeoutSeconds = &seconds }),
		rules: resourceinformers.NewFilteredDeviceTaintRuleInformer(client, 0, nil, func(o *metav1.ListOptions) {
			o.TimeoutSeconds, o.LabelSelector = &seconds, ourRules
		}),
		wanted: make(chan struct{}), pools: map[pool][]remediation.Published{},
	}
	for _, informer := range []cache.SharedIndexInformer{d.slices, d.rules} {
		_ = informer.SetTransform(slim) // fails only after the start
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { ring() }, UpdateFunc: func(any, any) { ring() }, DeleteFunc: func(any) { ring() },
		}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Devices implements remediation.Cluster.
func (c *Cluster) Devices(ctx context.Context) *remediation.Devices {
	d := c.devices
	if !d.watched {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		_, err := c.client.ResourceV1().DeviceTaintRules().List(ctx, metav1.ListOptions{LabelSelector: ourRules, Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // before Kubernetes 1.37
			return remediation.NewDevices(nil, nil)
		case err != nil:
			return &remediation.Devices{Err: err}
		}
		d.watched = true
		close(d.wanted)
		cache.WaitForCacheSync(ctx.Done(), d.slices.HasSynced, d.rules.HasSynced)
	}
	if !d.slices.HasSynced() || !d.rules.HasSynced() {
		return &remediation.Devices{Err: errors.New("the API server has not listed ResourceSlices and DeviceTaintRules yet")}
	}
	var rules []remediation.TaintRule
	for _, o := range d.rules.GetStore().List() {
		if rule, ok := c.rule(o.(*resourcev1.DeviceTaintRule)); ok {
			rules = append(rules, rule)
		}
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	all := remediation.NewDevices(c.published(), rules)
	all.Since = d.since
	return all
}

// published returns the devices of all nodes.
func (c *Cluster) published() (all []remediation.Published) {
	current := map[pool][]*resourcev1.ResourceSlice{} // of the highest generation
	for _, o := range c.devices.slices.GetStore().List() {
		s := o.(*resourcev1.ResourceSlice)
		if s.Spec.NodeName == nil {
			continue
		}
		of := pool{s.Spec.Driver, s.Spec.Pool.Name, *s.Spec.NodeName}
		if list := current[of]; len(list) > 0 && list[0].Spec.Pool.Generation != s.Spec.Pool.Generation {
			if list[0].Spec.Pool.Generation > s.Spec.Pool.Generation {
				continue
			}
			current[of] = nil
		}
		current[of] = append(current[of], s)
	}
	for of, list := range current {
		var published []remediation.Published
		for _, s := range list {
			for i := range s.Spec.Devices {
				published = append(published, publishedDevice(of, &s.Spec.Devices[i]))
			}
		}
		if int64(len(list)) < list[0].Spec.Pool.ResourceSliceCount { // the driver is publishing
			if c.devices.pools[of] == nil {
				continue // as if it had not begun
			}
			published = append(published, slices.DeleteFunc(slices.Clone(c.devices.pools[of]), func(p remediation.Published) bool {
				return slices.ContainsFunc(published, func(n remediation.Published) bool { return n.Place == p.Place || n.UUID == p.UUID && n.PCI == p.PCI })
			})...)
		}
		c.devices.pools[of] = published
	}
	maps.DeleteFunc(c.devices.pools, func(of pool, _ []remediation.Published) bool { return c.node(of.node) == nil })
	at := map[[3]string]bool{} // the devices of pools that have slices now
	for of := range current {
		for _, p := range c.devices.pools[of] {
			at[[3]string{p.Node, p.UUID, p.PCI}] = true
		}
	}
	for of, list := range c.devices.pools {
		for _, p := range list {
			if current[of] != nil || !at[[3]string{p.Node, p.UUID, p.PCI}] { // else it has left for another pool
				all = append(all, p)
			}
		}
	}
	return all
}

// addresses are the attributes with the PCI address of a device, by driver.
var addresses = []resourcev1.QualifiedName{"resource.kubernetes.io/pciBusID", "pcieBusID", "pciBusID", "pciAddress", "pciAddr"}

// slimSlice leaves the identities of devices.
func slimSlice(s *resourcev1.ResourceSlice) {
	s.ManagedFields = nil
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		maps.DeleteFunc(d.Attributes, func(name resourcev1.QualifiedName, _ resourcev1.DeviceAttribute) bool {
			return name != "uuid" && !slices.Contains(addresses, name)
		})
		*d = resourcev1.Device{Name: d.Name, Attributes: d.Attributes}
	}
}

func publishedDevice(of pool, d *resourcev1.Device) remediation.Published {
	text := func(names ...resourcev1.QualifiedName) (text string) {
		for _, name := range names {
			if value := d.Attributes[name].StringValue; value != nil {
				text = cmp.Or(text, *value)
			}
		}
		return text
	}
	return remediation.Published{
		Place: remediation.Place{Driver: of.driver, Pool: of.name, Name: d.Name}, Node: of.node, UUID: text("uuid"), PCI: text(addresses...),
	}
}

// rule converts a rule for the planner. It reports false for a rule that is not as this
// program makes them, and for the rule of a node that is deleted.
func (c *Cluster) rule(r *resourcev1.DeviceTaintRule) (remediation.TaintRule, bool) {
	selector := r.Spec.DeviceSelector
	if len(r.OwnerReferences) != 1 || selector == nil || selector.Driver == nil || selector.Pool == nil || selector.Device == nil {
		return remediation.TaintRule{}, false
	}
	owner := r.OwnerReferences[0]
	rule := remediation.TaintRule{
		Name: r.Name, UID: string(r.UID), Version: r.ResourceVersion, Node: owner.Name, Device: r.Annotations[remediation.DeviceAnnotation],
		Selects: remediation.Place{Driver: *selector.Driver, Pool: *selector.Pool, Name: *selector.Device}, Labels: r.Labels, Annotations: r.Annotations,
	}
	if taint := r.Spec.Taint; taint.Value != "" {
		rule.Taint = remediation.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)}
	}
	if r.Spec.Taint.TimeAdded != nil {
		rule.Changed = r.Spec.Taint.TimeAdded.Time
	}
	for _, is := range r.Status.Conditions {
		if is.Type == resourcev1.DeviceTaintConditionEvictionInProgress && is.ObservedGeneration == r.Generation {
			rule.Count = is.Message
		}
	}
	n := c.node(owner.Name)
	return rule, owner.Kind == "Node" && n != nil && n.UID == owner.UID && rule.Device != ""
}

// deviceTaint returns the taint of a rule. A rule without effect has no value.
func deviceTaint(list []remediation.Taint) resourcev1.DeviceTaint {
	now := metav1.Now()
	taint := resourcev1.DeviceTaint{Key: remediation.HealthLabel, Effect: resourcev1.DeviceTaintEffectNone, TimeAdded: &now}
	for _, t := range list {
		taint.Value, taint.Effect = t.Value, resourcev1.DeviceTaintEffect(t.Effect)
	}
	return taint
}

func selector(at remediation.Place) *resourcev1.DeviceTaintSelector {
	return &resourcev1.DeviceTaintSelector{Driver: &at.Driver, Pool: &at.Pool, Device: &at.Name}
}

// patchRule creates, changes or deletes the rule of a device by one request.
func (c *Cluster) patchRule(ctx context.Context, n *remediation.Node, p *remediation.Patch) error {
	err := c.change(ctx, func(ctx context.Context) error {
		rules := c.client.ResourceV1().DeviceTaintRules()
		uid := types.UID(n.UID)
		switch {
		case p.Delete:
			return rules.Delete(ctx, n.Device.Rule, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &p.Version}})
		case n.UID == "":
			_, err := rules.Create(ctx, newRule(n, p), metav1.CreateOptions{FieldManager: component})
			return err
		}
		metadata := map[string]any{"uid": uid, "resourceVersion": p.Version}
		if len(p.Labels) > 0 { // null would remove all
			metadata["labels"] = p.Labels
		}
		if len(p.Annotations) > 0 {
			metadata["annotations"] = p.Annotations
		}
		spec := map[string]any{}
		if p.Selects != nil {
			spec["deviceSelector"] = selector(*p.Selects)
		}
		if p.Taints != nil {
			taint := deviceTaint(*p.Taints)
			spec["taint"] = map[string]any{"value": nil, "effect": taint.Effect, "timeAdded": taint.TimeAdded}
			if taint.Value != "" {
				spec["taint"].(map[string]any)["value"] = taint.Value
			}
		}
		data, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
		if err != nil {
			return err
		}
		_, err = rules.Patch(ctx, n.Device.Rule, types.MergePatchType, data, metav1.PatchOptions{FieldManager: component})
		return err
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: %w", remediation.ErrConflict, err)
	}
	return err
}

// newRule returns the first rule of a device. It selects this device and no other.
func newRule(n *remediation.Node, p *remediation.Patch) *resourcev1.DeviceTaintRule {
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{
		Name: n.Device.Rule, Labels: map[string]string{managedBy: component}, Annotations: map[string]string{remediation.DeviceAnnotation: n.Device.ID},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: n.Name, UID: types.UID(n.Device.NodeUID)}},
	}}
	for key, value := range p.Labels {
		if value != nil {
			rule.Labels[key] = *value
		}
	}
	for key, value := range p.Annotations {
		if value != nil {
			rule.Annotations[key] = *value
		}
	}
	rule.Spec.DeviceSelector = selector(n.Device.Place)
	var taints []remediation.Taint
	if p.Taints != nil {
		taints = *p.Taints
	}
	rule.Spec.Taint = deviceTaint(taints)
	return rule
}
