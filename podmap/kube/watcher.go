package kube

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	linger = 10 * time.Minute // how long a deleted pod is kept
	expire = time.Hour        // how long pods are kept while the API server does not answer
)

// Watcher keeps a Map current.
type Watcher struct {
	opts      Options
	client    *client
	pods      podStore
	slices    sliceStore
	podFeed   *feed
	sliceFeed *feed   // nil unless slices are watched
	claims    *claims // nil unless slices are watched

	mu    sync.Mutex // guards the stores, the feeds' states and the fields below
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
	w := &Watcher{opts: opts, dirty: true}
	w.client = &client{opts: &w.opts}
	w.pods = podStore{opts: &w.opts, pods: map[string]Pod{}}
	w.podFeed = &feed{w: w, store: &w.pods, paths: []string{"/api/v1/pods"}}
	if opts.Slices {
		w.slices = sliceStore{node: opts.Node, slices: map[string]slice{}, devices: map[poolKey]map[string]Device{}}
		w.sliceFeed = &feed{w: w, store: &w.slices, paths: []string{
			"/apis/resource.k8s.io/v1/resourceslices",
			"/apis/resource.k8s.io/v1beta2/resourceslices",
			"/apis/resource.k8s.io/v1beta1/resourceslices",
		}}
		w.claims = newClaims(w)
	}
	return w, nil
}

// Run follows the API server until ctx is done. It must be called once.
func (w *Watcher) Run(ctx context.Context) {
	defer w.client.close()
	var running sync.WaitGroup
	running.Go(func() { w.podFeed.run(ctx) })
	if w.opts.Slices {
		running.Go(func() { w.sliceFeed.run(ctx) })
		running.Go(func() { w.claims.run(ctx) })
	}
	running.Wait()
}

// Latest returns the current data. It is never nil and makes no request.
func (w *Watcher) Latest() *Map {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(time.Now())
	states := Map{State: w.podFeed.state()}
	if w.opts.Slices {
		states.SliceState = w.sliceFeed.state()
	}
	if w.dirty || states.State != w.last.State || states.SliceState != w.last.SliceState {
		states.Pods, states.Devices = sortedPods(w.pods.pods), sortedDevices(w.slices.devices)
		w.dirty, w.last = false, &states
	}
	return w.last
}

// forget drops pods that are too old. Published devices do not age.
func (w *Watcher) forget(now time.Time) {
	if f := w.podFeed; f.known && f.failed != "" && now.Sub(f.heard) >= expire {
		f.known, f.listed = false, false
		clear(w.pods.pods)
		w.dirty = true
	}
	if w.pods.forget(now.Add(-linger)) {
		w.dirty = true
	}
}

// Status returns the state of the Watcher.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.forget(now)
	s := Status{Pods: w.podFeed.status(now, w.pods.count())}
	if w.opts.Slices {
		s.Slices = new(w.sliceFeed.status(now, w.slices.count()))
		s.Claims = new(w.claims.status(now, len(w.claims.of)))
	}
	return s
}
