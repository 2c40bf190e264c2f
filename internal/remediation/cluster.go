package remediation

import (
	"context"
	"errors"
	"time"
)

// ErrConflict: the node has changed since it was read. The next pass sees it.
var ErrConflict = errors.New("the node has changed meanwhile")

// Cluster is Kubernetes, as far as it is needed.
type Cluster interface {
	// Nodes returns all nodes.
	Nodes(ctx context.Context) ([]Node, error)
	// Patch changes a node as a whole, or not at all: its error is ErrConflict
	// where the node has another version than the patch expects.
	Patch(ctx context.Context, node string, p *Patch) error
	// SetCondition sets the node's condition of ConditionType.
	SetCondition(ctx context.Context, node string, c Condition) error
	// Note makes an Event. One of the same key that is there already is no
	// error.
	Note(ctx context.Context, n *Note) error
	// Evict asks that a pod leave the node, within its disruption budget. Where
	// dry, it asks what would become of that.
	Evict(ctx context.Context, node string, p *Pod, dry bool) (Eviction, error)
	// MakeJob makes a Job of the manifest that was in a file when the policy came
	// into force, to run on the node. One of the same key that is there already is
	// no error.
	MakeJob(ctx context.Context, file string, c *Call) error
}

// Eviction is what became of one.
type Eviction string

// The results of an eviction.
const (
	Evicted     Eviction = "evicted"
	EvictGone   Eviction = "gone"     // no such pod is on the node any more
	EvictBudget Eviction = "refused"  // by its disruption budget; asked again
	EvictOther  Eviction = "replaced" // one of that name that started later
	EvictKept   Eviction = "kept"     // its DaemonSet, or the kubelet, would start it again there
)

// Note is an Event on a node or a pod.
type Note struct {
	// Key is the same for the same note.
	Key string
	// Node is the node it is about; Pod too where its Name is not empty.
	Node    Node
	Pod     Pod
	Warning bool
	Reason  string
	Message string
	Time    time.Time
}

// Call is what a hook is told.
type Call struct {
	// Key is the same for the same node since it was taken out, and the same
	// hook: who is told twice may do it once.
	Key    string    `json:"key"`
	Hook   string    `json:"hook"`
	Node   string    `json:"node"`
	Since  time.Time `json:"since"`
	Alerts []string  `json:"alerts"`
	// Devices are those that the alerts tell of.
	Devices []string `json:"devices"`
}
