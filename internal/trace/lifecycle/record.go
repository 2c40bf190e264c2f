package lifecycle

import (
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// Kind says what a Record tells.
type Kind string

// The kinds of records, in the order in which a hold can have them.
const (
	Held       Kind = "held"           // the hold was found
	Activity   Kind = "first_activity" // the pod did something for the first time
	IdleBegan  Kind = "idle_began"
	IdleEnded  Kind = "idle_ended"
	FaultFound Kind = "fault"
	Released   Kind = "released"
)

// Record is one thing that is known of a hold.
type Record struct {
	// Hold numbers the holds of a Tracker.
	Hold uint64
	Kind Kind
	// Time is when it happened. Of Held it is when the hold was first listed.
	Time time.Time
	// Observed says that Time is when it happened, or just after: of Held, that
	// the hold was not there before; of Activity, that there was none before;
	// of Released, that the list went on being known up to then. Otherwise it
	// happened by then. Of IdleEnded it says that activity or the release ended
	// the stretch, and not that nothing was known any more.
	Observed bool
	// Life is the hold as it was when the record was made.
	Life *allocation.Life
	// Fault is set where Kind is FaultFound.
	Fault *Fault
}

// Fault is one that the device had while it was held.
type Fault struct {
	// Name is that of accel_allocation_fault_timestamp_seconds: xid_79.
	Name string
	// Code is the number of an Xid, 0 where the fault is none.
	Code uint64
	// Sub, Detail, Cause and Action are those of collector.Event. They are
	// empty where the event is not remembered any more.
	Sub, Detail string
	Cause       uint64
	Action      string
}
