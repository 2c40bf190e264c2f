package remediation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Place is where a DRA driver publishes a device. A driver may publish another device
// there later.
type Place struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
}

func (p Place) String() string { return p.Driver + "/" + p.Pool + "/" + p.Name }

// Published is a device that a DRA driver publishes for a node. It has one of the two IDs
// or both.
type Published struct {
	Place
	Node, UUID, PCI string
}

// TaintRule is a DeviceTaintRule of this program. It exists as long as the history of its
// device counts; while the device is in, its effect is None.
type TaintRule struct {
	Name, UID, Version string
	// Node is its owner. Device is the device by the label of alerts.
	Node, Device string
	// Selects is what it selects.
	Selects     Place
	Labels      map[string]string
	Annotations map[string]string
	// Taint is of the device, the zero Taint while it is in, since the time Changed.
	Taint   Taint
	Changed time.Time
	// Count is what Kubernetes reports about an eviction by the rule as it is, empty
	// before it has reported.
	Count string
}

// Devices are the devices of DRA drivers and the rules on them.
type Devices struct {
	at    map[string]Place // by node and ID; the zero Place if it is ambiguous
	taken map[Place][]string
	rules map[string]*TaintRule
	nodes map[string]bool // of which a device is published
	// Since is when this process began to know the devices.
	Since time.Time
	// Err is why they are not known. Nothing is then done for a single device.
	Err error
}

// NewDevices returns the devices of a cluster.
func NewDevices(published []Published, rules []TaintRule) *Devices {
	d := &Devices{at: map[string]Place{}, taken: map[Place][]string{}, rules: map[string]*TaintRule{}, nodes: map[string]bool{}}
	for _, p := range published {
		d.nodes[p.Node] = true
		for _, id := range []string{p.UUID, p.PCI} {
			key := deviceKey(p.Node, strings.ToLower(id))
			at, known := d.at[key]
			switch {
			case id == "":
			case known && at != p.Place: // as partitions have the address of their GPU
				d.at[key] = Place{}
			default:
				d.at[key] = p.Place
				d.taken[p.Place] = append(d.taken[p.Place], key)
			}
		}
	}
	for i := range rules {
		d.rules[deviceKey(rules[i].Node, rules[i].Device)] = &rules[i]
	}
	return d
}

// publishTime is for how long after the start a node without any device is not taken out
// for one: a kubelet that restarts deletes the devices of its node, and its drivers publish
// them again.
const publishTime = 3 * time.Minute

// unknown returns why it is not known whether a device of the node can be taken out alone,
// or "".
func (d *Devices) unknown(node string, now time.Time) string {
	switch until := d.Since.Add(publishTime); {
	case d.Err != nil:
		return d.Err.Error()
	case !d.nodes[node] && now.Before(until):
		return "no DRA driver publishes devices of the node, as while its kubelet restarts; without any by " + until.UTC().Format(time.RFC3339) + " the node is taken out"
	}
	return ""
}

func deviceKey(node, id string) string { return node + "/" + id }

// place returns where a driver publishes the device, the zero Place if none does or at
// several places.
func (d *Devices) place(node, id string) Place { return d.at[deviceKey(node, strings.ToLower(id))] }

// another reports whether a driver publishes another device there.
func (d *Devices) another(at Place, node, id string) bool {
	by, taken := d.taken[at]
	return taken && !slices.Contains(by, deviceKey(node, strings.ToLower(id)))
}

// has reports whether the device can be taken out alone: it is published, or it was when
// it was taken out.
func (d *Devices) has(node, id string) bool {
	if d == nil || id == "" {
		return false
	}
	rule := d.rules[deviceKey(node, id)]
	return d.place(node, id) != Place{} || rule != nil && rule.Annotations[RecordAnnotation] != ""
}

// Device is the part of a Node that is one of its devices. UID, Version and Annotations
// of the Node are then its rule's, empty before there is one.
type Device struct {
	ID string `json:"id"`
	// Rule is the name of its DeviceTaintRule.
	Rule string `json:"rule"`
	// Selects is what the rule selects, Place is what it should select.
	Selects Place `json:"selects,omitzero"`
	Place   Place `json:"place,omitzero"`
	// Another: a driver publishes another device at Place.
	Another bool      `json:"another,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
	Count   string    `json:"count,omitempty"`
	// NodeUID is the UID of the node, which owns the rule.
	NodeUID string `json:"-"`
}

// key identifies a node, or one device of it, in a plan.
func (n *Node) key() string {
	if n.Device == nil {
		return n.Name
	}
	return deviceKey(n.Name, n.Device.ID)
}

// device is the ID of the device, empty for the whole node.
func (n *Node) device() string {
	if n.Device == nil {
		return ""
	}
	return n.Device.ID
}

// id is the same for the same node, or device of a node, and not used again.
func (n *Node) id() string {
	if n.Device == nil {
		return n.UID
	}
	return n.Device.Rule
}

// callKey identifies the node or the device in the key of a call, which is part of a name.
func (n *Node) callKey() string {
	if n.Device == nil {
		return n.Name
	}
	return n.Name + "-" + n.Device.Rule
}

// steps are all steps of a plan.
func (p *Plan) steps() (all []*Step) {
	for _, list := range [][]Step{p.Nodes, p.Devices} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// subjects returns the nodes, and each device of them that has a rule or that an alert of
// a rule with device names.
func (p *Policy) subjects(in *Situation) []Node {
	list := slices.Clone(in.Nodes)
	if in.Devices == nil {
		return list
	}
	named := map[string][]string{} // by node
	for _, rule := range in.Devices.rules {
		named[rule.Node] = append(named[rule.Node], rule.Device)
	}
	for _, s := range in.Alerts.known {
		node, id := s.Labels[p.NodeLabel], s.Labels["device"]
		if r := p.rule(&s.Alert); r != nil && r.Device != "" && in.Devices.has(node, id) && !slices.Contains(named[node], id) {
			named[node] = append(named[node], id)
		}
	}
	for i := range in.Nodes {
		for _, id := range named[in.Nodes[i].Name] {
			list = append(list, in.Devices.subject(&in.Nodes[i], id))
		}
	}
	return list
}

// ruleName is the same for the same device of the same node, so that it has one rule.
func ruleName(nodeUID, id string) string {
	sum := sha256.Sum256([]byte(nodeUID + "/" + id))
	return "accel-" + hex.EncodeToString(sum[:8])
}

// subject returns a device as a Node of the plan.
func (d *Devices) subject(of *Node, id string) Node {
	n := *of
	n.UID, n.Version, n.Condition, n.Taints = "", "", Condition{}, nil
	n.Annotations, n.Labels = map[string]string{}, maps.Clone(of.Labels)
	delete(n.Labels, HealthLabel)
	n.Device = &Device{ID: id, Rule: ruleName(of.UID, id), Place: d.place(of.Name, id), NodeUID: of.UID}
	if r := d.rules[deviceKey(of.Name, id)]; r != nil {
		n.UID, n.Version = r.UID, r.Version
		maps.Copy(n.Annotations, r.Annotations)
		if health, ok := r.Labels[HealthLabel]; ok {
			put(&n.Labels, HealthLabel, health)
		}
		if r.Taint != (Taint{}) {
			n.Taints = []Taint{r.Taint}
		}
		n.Device.Selects, n.Device.Changed, n.Device.Count = r.Selects, r.Changed, r.Count
		n.Device.Place = cmp.Or(n.Device.Place, r.Selects)
	}
	if hold, ok := of.Annotations[HoldAnnotation]; ok {
		n.Annotations[HoldAnnotation] = hold
	}
	n.Device.Another = d.another(n.Device.Place, of.Name, id)
	return n
}

// The effects of taints of devices.
const (
	effectNone      = "None"
	effectSchedule  = "NoSchedule"
	effectExecute   = "NoExecute"
	countingTimeout = time.Minute
)

// deviceTaint returns the taint that a device should have. Its effect is None while
// Kubernetes counts the pods that NoExecute would evict.
func (s *Step) deviceTaint(n *Node, w *want, r *Record, now time.Time) []Taint {
	has := func(effect string) bool {
		return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Effect == effect })
	}
	effect := w.device
	switch {
	case has(effectExecute):
		effect = effectExecute
	case effect == effectExecute && r.Refused == "":
		refused, counted := "", false
		if has(effectNone) {
			refused, counted = n.Device.refuses(w.pods(), now)
		}
		if r.Refused = refused; !counted {
			effect = effectNone
		}
	}
	if r.Refused != "" && w.device == effectExecute {
		effect, s.Withheld, s.Missing = effectSchedule, WithheldEviction, r.Refused
	}
	return []Taint{{HealthLabel, w.health, effect}}
}

var wouldEvict = regexp.MustCompile(`(\d+) pods? would be evicted`)

// refuses returns why NoExecute is refused, or "", once Kubernetes has counted the pods
// that it would evict: more than the alerts name are not evicted.
func (d *Device) refuses(named int, now time.Time) (why string, counted bool) {
	found := wouldEvict.FindStringSubmatch(d.Count)
	if found == nil {
		if d.Count == "" && now.Sub(d.Changed) < countingTimeout {
			return "", false
		}
		return fmt.Sprintf("Kubernetes does not count the pods that NoExecute would evict (%q)", d.Count), true
	}
	if n, err := strconv.Atoi(found[1]); err != nil || n > named {
		return fmt.Sprintf("NoExecute would evict %s pods, and the alerts name %d", found[1], named), true
	}
	return "", true
}

// pods counts the pods that the alerts name.
func (w *want) pods() int {
	names := map[string]bool{}
	for _, pod := range w.hurt {
		names[pod.Namespace+"/"+pod.Name] = true
	}
	return len(names)
}

// follow brings the rule of a device that is out to the place of the device. If a driver
// publishes another device there, the rule has no effect.
func (s *Step) follow(n *Node, r *Record) {
	after := *n
	after.Taints = r.Taints
	s.change(n, &after)
}
