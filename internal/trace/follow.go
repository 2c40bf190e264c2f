package trace

import (
	"cmp"
	"context"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// updatePause is the minimum time between two updates. Snapshots in between may be
// skipped, because allocations and events stay in a Snapshot for longer.
const updatePause = time.Second

// Sources are the inputs of a Follower. None of the functions may block.
type Sources struct {
	// Latest and Next are methods of the Sampler.
	Latest func() *collector.Snapshot
	Next   func() <-chan struct{}
	// History returns the state of the allocations.
	History func() *allocation.History
	// Identify and Node are the arguments of NewTracker.
	Identify Identifier
	Node     string
	// Pause is the minimum time between two updates; 0 means 1 s.
	Pause time.Duration
}

// Follower gives the spans of all allocations to a Sender.
type Follower struct {
	*Sender
	of      Sources
	tracker *Tracker
}

// Follow returns a Follower that Run starts. It owns the Sender.
func Follow(s *Sender, of Sources) *Follower {
	of.Pause = cmp.Or(of.Pause, updatePause)
	return &Follower{Sender: s, of: of, tracker: NewTracker(of.Node, of.Identify)}
}

// Run follows allocations until ctx is done. It then sends the spans of all
// stages and closes the Sender.
func (f *Follower) Run(ctx context.Context) {
	defer f.Close()
	for ctx.Err() == nil {
		next := f.of.Next()
		f.update()
		select {
		case <-next:
		case <-ctx.Done():
		}
		select {
		case <-time.After(f.of.Pause):
		case <-ctx.Done():
		}
	}
	f.update()
	f.Send(f.tracker.Close(time.Now())...)
}

// update sends the changes since the previous update. If the judges are one Snapshot
// ahead, the next update has both.
func (f *Follower) update() {
	snap, state := f.of.Latest(), f.of.History()
	if snap == nil || !state.Time.Equal(snap.Time) {
		return
	}
	f.Send(f.tracker.Update(state, snap.Events)...)
}
