package remediation

import (
	"encoding/json"
	"slices"
	"time"
)

// The names of labels, annotations and conditions on nodes. They are a contract
// with schedulers and people.
const (
	// HealthLabel has the value degraded or failed.
	HealthLabel = "accel.health"
	// RecordAnnotation is a Record, as JSON.
	RecordAnnotation = "accel.health/record"
	// HistoryAnnotation is a JSON list of the times at which the node was taken out,
	// within the repeat.within of the policy.
	HistoryAnnotation = "accel.health/history"
	// ReturnedAnnotation is the time, as JSON, at which the node was let in last.
	ReturnedAnnotation = "accel.health/returned"
	// HoldAnnotation exempts the node from every change if a person sets it to any
	// value but "false".
	HoldAnnotation = "accel.health/hold"
	// AdmitAnnotation lets the node in without a proof of its exporter, against the pace
	// and after a change of the policy, if a person sets it to any value but "false".
	AdmitAnnotation = "accel.health/admit"
	// DeviceAnnotation is the device of a DeviceTaintRule, as the label device of alerts
	// names it.
	DeviceAnnotation = "accel.health/device"
	// InspectAnnotation requests an inspection of the hardware. It is set when a
	// node is taken out too often, and keeps it out until a person removes it.
	InspectAnnotation = "accel.health/inspect"
	// ConditionType is the type of the node's condition, True for a healthy node.
	ConditionType = "AcceleratorsHealthy"
)

// Node is the part of a Kubernetes node, or of one device of it, that a plan depends on.
type Node struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Version is its resourceVersion. A change of another version is refused.
	Version       string            `json:"version"`
	Labels        map[string]string `json:"-"`
	Annotations   map[string]string `json:"annotations"`
	Taints        []Taint           `json:"taints"`
	Unschedulable bool              `json:"unschedulable"`
	// NotReady: the node's condition Ready is not True.
	NotReady bool `json:"notReady"`
	// Condition is the condition of ConditionType, zero if there is none.
	Condition Condition `json:"condition,omitzero"`
	// Device is nil for the whole node.
	Device *Device `json:"device,omitempty"`
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key" yaml:"key"`
	Value  string `json:"value,omitempty" yaml:"value"`
	Effect string `json:"effect" yaml:"effect" accept:"NoSchedule|PreferNoSchedule|NoExecute"`
}

// same reports whether a node can have only one of the two.
func (t Taint) same(o Taint) bool { return t.Key == o.Key && t.Effect == o.Effect }

// Condition is a condition of a node.
type Condition struct {
	// Status is True, False or Unknown; empty for no condition.
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Record lists the changes of a node since it was taken out.
type Record struct {
	// Since is when it was taken out.
	Since time.Time `json:"since"`
	// Fired is since when the alert has fired that it was taken out for.
	Fired time.Time `json:"fired,omitzero"`
	// Alerts are the names of the current alerts.
	Alerts []string `json:"alerts"`
	// Devices are the devices that any of the alerts named.
	Devices []string `json:"devices,omitempty"`
	// Health is the label's value.
	Health string `json:"health,omitempty"`
	// Taints are the added taints.
	Taints []Taint `json:"taints,omitempty"`
	// Cordoned: the node was schedulable and is cordoned.
	Cordoned bool `json:"cordoned,omitempty"`
	// Condition: the condition was set.
	Condition bool `json:"condition,omitempty"`
	// Called are the hooks that were called.
	Called []string `json:"called,omitempty"`
	// Tests are the hooks whose Jobs must pass before the return, one after the other, and
	// Test is the present one. Tested is when it was begun, or when it failed, and Failed is
	// why.
	Tests  []string  `json:"tests,omitempty"`
	Test   string    `json:"test,omitempty"`
	Tested time.Time `json:"tested,omitzero"`
	Failed string    `json:"failed,omitempty"`
	// Refused is why NoExecute is refused for the device.
	Refused string `json:"refused,omitempty"`
}

// record returns the node's record, nil if there is none. An unreadable record
// counts as none, so that nothing on the node is undone.
func (n *Node) record() *Record {
	text, ok := n.Annotations[RecordAnnotation]
	if !ok {
		return nil
	}
	r := new(Record)
	if json.Unmarshal([]byte(text), r) != nil || r.Since.IsZero() {
		return nil
	}
	return r
}

// history returns the times at which the node was taken out, the latest last.
func (n *Node) history() []time.Time {
	var times []time.Time
	if json.Unmarshal([]byte(n.Annotations[HistoryAnnotation]), &times) != nil {
		return nil
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// returned returns when the node was let in last, zero if it never was.
func (n *Node) returned() (t time.Time) {
	if json.Unmarshal([]byte(n.Annotations[ReturnedAnnotation]), &t) != nil {
		return time.Time{}
	}
	return t
}

// exempt reports whether a person has set HoldAnnotation.
func (n *Node) exempt() bool { return n.says(HoldAnnotation) }

// admitted reports whether a person has set AdmitAnnotation.
func (n *Node) admitted() bool { return n.says(AdmitAnnotation) }

func (n *Node) says(annotation string) bool {
	v, ok := n.Annotations[annotation]
	return ok && v != "false"
}

func (n *Node) inspected() bool {
	_, ok := n.Annotations[InspectAnnotation]
	return ok
}

// Patch is a change of a node. It is applied as a whole or not at all.
type Patch struct {
	// Version is the resourceVersion that the node must have.
	Version string `json:"-"`
	// Labels and Annotations are set to these values, or removed if nil.
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
	// Taints replace all taints; nil leaves them.
	Taints *[]Taint `json:"taints,omitempty"`
	// Unschedulable is set; nil leaves it.
	Unschedulable *bool `json:"unschedulable,omitempty"`
	// Selects is what the rule of a device selects; nil leaves it.
	Selects *Place `json:"selects,omitempty"`
	// Delete removes the rule of a device.
	Delete bool `json:"delete,omitempty"`
}

// Empty reports whether the patch changes nothing.
func (p *Patch) Empty() bool {
	return len(p.Labels) == 0 && len(p.Annotations) == 0 && p.Taints == nil && p.Unschedulable == nil && p.Selects == nil && !p.Delete
}

// difference returns the change from was to is for some keys.
func difference(was, is map[string]string, keys ...string) map[string]*string {
	change := map[string]*string{}
	for _, key := range keys {
		before, had := was[key]
		now, has := is[key]
		switch {
		case has && (!had || before != now):
			change[key] = &now
		case had && !has:
			change[key] = nil
		}
	}
	return change
}
