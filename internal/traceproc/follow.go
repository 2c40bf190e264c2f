package traceproc

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
)

// lookPause is the least time between two looks. What happens meanwhile is not
// lost: holds and events are remembered for longer.
const lookPause = time.Second

// Sources are what a Follower looks at. None of the functions may block.
type Sources struct {
	// Latest and Next are those of the Sampler.
	Latest func() *collector.Snapshot
	Next   func() <-chan struct{}
	Lives  func() *allocation.Lives
	// Identify and Node are those of NewBook.
	Identify Identifier
	Node     string
	// Pause is the least time between two looks; a second where it is 0.
	Pause time.Duration
}

// Follower tells a Process of all allocations. It implements
// prometheus.Collector.
type Follower struct {
	*Process
	of      Sources
	tracker *lifecycle.Tracker
	book    *Book

	allocations, holds, untracked atomic.Int64
}

// Follow returns a Follower that has not begun yet.
func Follow(p *Process, of Sources) *Follower {
	of.Pause = cmp.Or(of.Pause, lookPause)
	return &Follower{Process: p, of: of, tracker: lifecycle.New(), book: NewBook(of.Node, of.Identify)}
}

// Run follows allocations until ctx is done, and then tells what there is to
// tell of them.
func (f *Follower) Run(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() { f.Process.Run(sending) })
	for ctx.Err() == nil {
		next := f.of.Next()
		f.look()
		select {
		case <-next:
		case <-ctx.Done():
		}
		select {
		case <-time.After(f.of.Pause):
		case <-ctx.Done():
		}
	}
	f.look()
	now := time.Now()
	f.Add(f.book.Write(now, f.tracker.Close())...)
	f.Add(f.book.Flush(now)...)
	stop()
	loops.Wait()
}

// look tells what has happened since the last one. Where the judges are just
// ahead of the Snapshot, the next one is looked at.
func (f *Follower) look() {
	snap, lives := f.of.Latest(), f.of.Lives()
	if snap == nil || !lives.Time.Equal(snap.Time) {
		return
	}
	f.Add(f.book.Write(lives.Time, f.tracker.Look(lives, snap.Events))...)
	f.allocations.Store(int64(f.book.Open()))
	f.holds.Store(int64(f.tracker.Open()))
	f.untracked.Store(int64(f.tracker.Untracked()))
}

var (
	descAllocations = prometheus.NewDesc("accel_traces_open_allocations",
		"Allocations that are followed: pods that hold devices.", nil, nil)
	descHolds = prometheus.NewDesc("accel_traces_open_holds",
		"Holds of a pod on a device that are followed.", nil, nil)
	descUntracked = prometheus.NewDesc("accel_traces_untracked_holds",
		"Holds that are not followed, because too many are.", nil, nil)
)

// Describe implements prometheus.Collector.
func (f *Follower) Describe(ch chan<- *prometheus.Desc) {
	f.Process.Describe(ch)
	ch <- descAllocations
	ch <- descHolds
	ch <- descUntracked
}

// Collect implements prometheus.Collector.
func (f *Follower) Collect(ch chan<- prometheus.Metric) {
	f.Process.Collect(ch)
	ch <- prometheus.MustNewConstMetric(descAllocations, prometheus.GaugeValue, float64(f.allocations.Load()))
	ch <- prometheus.MustNewConstMetric(descHolds, prometheus.GaugeValue, float64(f.holds.Load()))
	ch <- prometheus.MustNewConstMetric(descUntracked, prometheus.GaugeValue, float64(f.untracked.Load()))
}
