package trace

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
)

// updatePause is the minimum time between two updates. Snapshots in between may be
// skipped, because allocations and events stay in a Snapshot for longer.
const updatePause = time.Second

// Sources are the inputs of a Follower. None of the functions may block.
type Sources struct {
	// Latest and Next are those of the Sampler.
	Latest func() *collector.Snapshot
	Next   func() <-chan struct{}
	// History returns the state of the allocations.
	History func() *allocation.History
	// Identify and Node are those of NewBuilder.
	Identify Identifier
	Node     string
	// Pause is the minimum time between two updates; 0 means 1 s.
	Pause time.Duration
}

// Follower gives the spans of all allocations to a Sender. It is a
// prometheus.Collector.
type Follower struct {
	*Sender
	of      Sources
	tracker *lifecycle.Tracker
	builder *Builder

	pods, allocations, untracked atomic.Int64
}

// Follow returns a Follower that Run starts. It owns the Sender.
func Follow(s *Sender, of Sources) *Follower {
	of.Pause = cmp.Or(of.Pause, updatePause)
	return &Follower{Sender: s, of: of, tracker: lifecycle.New(), builder: NewBuilder(of.Node, of.Identify)}
}

// Run follows allocations until ctx is done. It then sends the spans that have
// ended and closes the Sender.
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
	now := time.Now()
	f.Send(f.builder.Write(now, f.tracker.Close())...)
	f.Send(f.builder.Flush(now)...)
}

// update sends the changes since the previous update. If the judges are one Snapshot
// ahead, the next update has both.
func (f *Follower) update() {
	snap, state := f.of.Latest(), f.of.History()
	if snap == nil || !state.Time.Equal(snap.Time) {
		return
	}
	f.Send(f.builder.Write(state.Time, f.tracker.Update(state, snap.Events))...)
	f.pods.Store(int64(f.builder.Open()))
	f.allocations.Store(int64(f.tracker.Open()))
	f.untracked.Store(int64(f.tracker.Untracked()))
}

var (
	descPods = prometheus.NewDesc("accel_traces_open_allocations",
		"Traces in progress: one for each pod that has devices.", nil, nil)
	descAllocations = prometheus.NewDesc("accel_traces_open_holds",
		"Allocations in progress that are traced: one for each pod and device.", nil, nil)
	descUntracked = prometheus.NewDesc("accel_traces_untracked_holds",
		"Allocations in progress that are not traced, because there are too many.", nil, nil)
)

// Describe implements prometheus.Collector.
func (f *Follower) Describe(ch chan<- *prometheus.Desc) {
	f.Sender.Describe(ch)
	ch <- descPods
	ch <- descAllocations
	ch <- descUntracked
}

// Collect implements prometheus.Collector.
func (f *Follower) Collect(ch chan<- prometheus.Metric) {
	f.Sender.Collect(ch)
	ch <- prometheus.MustNewConstMetric(descPods, prometheus.GaugeValue, float64(f.pods.Load()))
	ch <- prometheus.MustNewConstMetric(descAllocations, prometheus.GaugeValue, float64(f.allocations.Load()))
	ch <- prometheus.MustNewConstMetric(descUntracked, prometheus.GaugeValue, float64(f.untracked.Load()))
}
