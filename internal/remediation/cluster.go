package remediation

import (
	"context"
	"errors"
	"time"
)

// ErrConflict means that the node has changed since it was read. The next pass reads it
// again.
var ErrConflict = errors.New("the node has changed since it was read")

// Cluster is the part of Kubernetes that the Controller uses.
type Cluster interface {
	// Nodes returns all nodes.
	Nodes() []Node
	// Devices returns the devices of DRA drivers and the rules of this program on them.
	// The first call begins to watch them. A cluster without them has none.
	Devices(ctx context.Context) *Devices
	// Patch applies a patch of a node, or of the rule of a device, as a whole or not at
	// all. It returns ErrConflict if it has another version than the patch expects.
	Patch(ctx context.Context, n *Node, p *Patch) error
	// SetCondition sets the node's condition of ConditionType.
	SetCondition(ctx context.Context, node string, c Condition) error
	// Note creates an Event. It is no error if one of the same key exists.
	Note(ctx context.Context, n *Note) error
	// Evict evicts a pod from the node if its disruption budget allows it.
	Evict(ctx context.Context, node string, p *Pod) (Eviction, error)
	// MakeJob creates a Job that runs on the node, from the manifest that the file
	// had when the policy came into force. It is no error if one of the same key
	// exists.
	MakeJob(ctx context.Context, file string, c *Call) error
	// Job returns the state of the Job of a call.
	Job(ctx context.Context, c *Call) (JobState, error)
}

// Eviction is the result of an eviction.
type Eviction string

// The results of evictions.
const (
	Evicted     Eviction = "evicted"
	EvictGone   Eviction = "gone"    // the pod has left the node, or a later pod has its name
	EvictBudget Eviction = "refused" // by its disruption budget; the next pass tries again
	EvictKept   Eviction = "kept"    // its DaemonSet, or the kubelet, would restart it there
)

// Note is an Event on a node or a pod.
type Note struct {
	// Key is the same for the same note.
	Key string
	// Node is the subject of the Event, or Pod if its Name is not empty.
	Node    Node
	Pod     Pod
	Warning bool
	Reason  string
	Message string
	Time    time.Time
}

// Call is the content of a call of a hook.
type Call struct {
	// Key identifies the node, the time it was taken out, and the hook. A repeated
	// call has the same key, so that a hook can ignore it.
	Key    string    `json:"key"`
	Hook   string    `json:"hook"`
	Node   string    `json:"node"`
	Since  time.Time `json:"since"`
	Alerts []string  `json:"alerts"`
	// Devices are the devices that the alerts name.
	Devices []string `json:"devices"`
	// Claim is the claim of a test of a single device, nil else: its Job is bound to the
	// node by its device.
	Claim *Claim `json:"-"`
}

// Claim is a claim for exactly one device, in spite of its rule.
type Claim struct {
	Class  string
	Device Device
	// RuleUID is of the rule of the device, which owns the claim.
	RuleUID string
}
