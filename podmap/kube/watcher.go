package kube

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Watcher keeps a Map current.
type Watcher struct {
	opts   Options
	client *client
	pods   pods
	pools  pools
	feeds  []*feed // of pods, then of slices where they are watched
	claims claims  // where slices are watched

	mu    sync.Mutex // guards the stores, the feeds' states and what follows
	dirty bool       // last is older than the stores
	last  *Map
}

// New returns a Watcher that does nothing before Run. The error names invalid
// Options.
func New(opts Options) (*Watcher, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("pod metadata: %w", err)
	}
	w := &Watcher{opts: opts, pods: pods{node: opts.Node}, pools: pools{node: opts.Node}}
	w.client = &client{opts: &w.opts}
	w.feeds = []*feed{{w: w, store: &w.pods, ages: true, status: newFeedStatus(), paths: []string{"/api/v1/pods"}}}
	if opts.Slices {
		w.feeds = append(w.feeds, &feed{w: w, store: &w.pools, status: newFeedStatus(), paths: []string{
			"/apis/resource.k8s.io/v1/resourceslices",
			"/apis/resource.k8s.io/v1beta2/resourceslices",
			"/apis/resource.k8s.io/v1beta1/resourceslices",
		}})
	}
	w.claims = claims{
		w: w, wants: make(chan struct{}, 1), read: make(chan struct{}, 1), status: newFeedStatus(), known: map[string]*claim{},
	}
	w.last = w.build()
	return w, nil
}

// Run follows the API server until ctx is done. It must be called once.
func (w *Watcher) Run(ctx context.Context) {
	defer w.client.close()
	var running sync.WaitGroup
	for _, f := range w.feeds {
		running.Go(func() { f.run(ctx) })
	}
	if w.opts.Slices {
		running.Go(func() { w.claims.run(ctx) })
	}
	running.Wait()
}

// Latest returns the current data. It is never nil and makes no request.
func (w *Watcher) Latest() *Map {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, f := range w.feeds {
		if f.refresh(now) {
			w.dirty = true
		}
	}
	if w.dirty {
		w.dirty = false
		w.last = w.build()
	}
	return w.last
}

func (w *Watcher) build() *Map {
	m := &Map{State: w.feeds[0].status.State, Pods: w.pods.list()}
	if len(w.feeds) > 1 {
		m.SliceState, m.Devices = w.feeds[1].status.State, w.pools.list()
	}
	return m
}

// Status returns the state of the Watcher.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	s := Status{Pods: w.feeds[0].describe(now)}
	if len(w.feeds) > 1 {
		s.Slices, s.Claims = new(w.feeds[1].describe(now)), new(w.claims.describe(now))
	}
	return s
}

// describe returns a copy of the status as of now.
func (f *feed) describe(now time.Time) FeedStatus {
	if f.refresh(now) {
		f.w.dirty = true
	}
	s := f.status.at(now)
	s.Objects, s.Kept = f.store.count()
	return s
}
