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
	kubelet   *kubelet // nil without Options.Kubelet
	podFeed   *feed    // nil without Options.Pods
	sliceFeed *feed    // nil unless slices are watched
	claims    *claims  // nil unless slices are watched

	mu    sync.Mutex // guards the stores, the feeds' states and the fields below
	dirty bool       // last is older than the stores
	last  *Map
}

// New returns a Watcher that requests nothing before Run. Close ends a Watcher that
// does not run. The error names invalid Options.
func New(opts Options) (*Watcher, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("pod metadata: %w", err)
	}
	w := &Watcher{opts: opts, dirty: true}
	w.client = &client{opts: &w.opts}
	w.pods = podStore{opts: &w.opts, pods: map[string]Pod{}}
	if opts.Kubelet != "" {
		var err error
		if w.kubelet, err = newKubelet(w); err != nil {
			return nil, err
		}
	}
	if opts.Pods {
		w.podFeed = &feed{w: w, store: &w.pods, paths: []string{"/api/v1/pods"}}
	}
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

// Close closes the connection to the kubelet, which is not open yet before Run.
func (w *Watcher) Close() {
	if w.kubelet != nil {
		w.kubelet.conn.Close()
	}
}

// Run follows the API server until ctx is done. It must be called once.
func (w *Watcher) Run(ctx context.Context) {
	defer w.client.close()
	var running sync.WaitGroup
	list, stop := context.WithCancel(ctx)
	defer stop()
	if w.kubelet != nil {
		w.kubelet.instead = stop
		running.Go(func() { w.kubelet.run(ctx) })
	}
	if w.podFeed != nil {
		running.Go(func() { w.podFeed.run(list) })
	}
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
	states := Map{State: w.podState()}
	if w.opts.Slices {
		states.SliceState = w.sliceFeed.state()
	}
	if w.dirty || states.State != w.last.State || states.SliceState != w.last.SliceState {
		states.Pods, states.Devices = sortedPods(w.pods.pods), sortedDevices(w.slices.devices)
		w.dirty, w.last = false, &states
	}
	return w.last
}

// podProgress is that of the source of pods: the kubelet once it has served them, and
// where no API server is read.
func (w *Watcher) podProgress() *progress {
	switch {
	case w.kubelet != nil && (w.kubelet.served || w.podFeed == nil):
		return &w.kubelet.progress
	case w.podFeed != nil:
		return &w.podFeed.progress
	}
	return &progress{}
}

// podState is StateNone on a node without the kubelet's API, unless the API server is
// read.
func (w *Watcher) podState() State {
	if k := w.kubelet; w.podFeed == nil && (k == nil || k.absent && !k.served) {
		return StateNone
	}
	return w.podProgress().state()
}

// forget drops pods that are too old. Published devices do not age.
func (w *Watcher) forget(now time.Time) {
	if p := w.podProgress(); p.known && p.failed != "" && now.Sub(p.heard) >= expire {
		p.known = false
		if w.podFeed != nil {
			w.podFeed.listed = false
		}
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
	s := Status{Pods: w.podProgress().status(now, w.pods.count())}
	s.Pods.State = w.podState()
	if w.opts.Slices {
		s.Slices = new(w.sliceFeed.status(now, w.slices.count()))
		s.Claims = new(w.claims.status(now, len(w.claims.of)))
	}
	return s
}
