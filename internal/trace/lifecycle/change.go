package lifecycle

import (
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// Kind is the kind of a Change.
type Kind string

// The kinds of changes, in the order in which an allocation can have them.
const (
	Allocated  Kind = "allocated"
	Activity   Kind = "first_activity" // of the pod on the device
	IdleBegan  Kind = "idle_began"
	IdleEnded  Kind = "idle_ended"
	FaultFound Kind = "fault"
	Released   Kind = "released"
)

// Change is one change of an allocation.
type Change struct {
	// Allocation numbers the allocations of a Tracker, from 1.
	Allocation uint64
	Kind       Kind
	// Time is when it happened. For Allocated it is when the allocation was
	// first listed.
	Time time.Time
	// Observed reports whether the change itself was observed, so that Time is
	// exact to one Snapshot. Otherwise it happened at Time or earlier:
	//   - Allocated: the previous list was without the allocation.
	//   - Activity: there was no activity before.
	//   - IdleEnded: activity or the release ended the idle period. Otherwise
	//     it ends at the last time at which activity was known.
	//   - Released: the list was complete at all times up to the release.
	Observed bool
	// State is the state of the allocation when the change was found.
	State *allocation.Record
	// Fault is set for FaultFound only.
	Fault *Fault
}

// Fault is a fault of the device during the allocation.
type Fault struct {
	// Name is the one in accel_allocation_fault_timestamp_seconds: xid_79.
	Name string
	// Code is the number of an Xid, 0 for any other fault.
	Code uint64
	// Sub, Detail, Cause and Action are the fields of collector.Event. They are
	// empty if the event is no longer in the Snapshot.
	Sub, Detail string
	Cause       uint64
	Action      string
}
