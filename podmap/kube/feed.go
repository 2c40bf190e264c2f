package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Times between requests. A server that has just started may refuse all
// requests for some seconds, so a refusal is no reason for a long wait.
const (
	shortest = time.Second
	longest  = 30 * time.Second
	// steady is how long a watch has to last to count as one.
	steady = 10 * time.Second
	// watchLasts is the least duration of a watch before another one replaces
	// it. Up to twice that is requested, so that the nodes of a cluster do not
	// reconnect at once.
	watchLasts = 5 * time.Minute
)

// store has the objects of one kind. Watcher.mu is locked for every call.
type store interface {
	kind() string
	replace(list []document, now time.Time)
	put(*document)
	remove(d *document, now time.Time)
}

// feed lists and watches the objects of one kind.
type feed struct {
	w     *Watcher
	store store
	// paths are the paths of the resource, by version of its API, the newest first.
	paths []string
	path  int // which of them; used by the feed's goroutine alone

	// Guarded by Watcher.mu.
	progress
	version string // of the known objects
	listed  bool   // there is a list that a watch can follow
	latest  bool   // the next list has to be of the latest state
	broken  bool   // the latest watch has failed
}

// run lists and watches until ctx is done.
func (f *feed) run(ctx context.Context) {
	for failures := 0; ; {
		began := time.Now()
		f.w.mu.Lock()
		watch := f.listed
		f.w.mu.Unlock()
		request := f.list
		if watch {
			request = f.watch
		}
		err := request(ctx)
		if ctx.Err() != nil {
			return
		}
		after := f.note(watch, err)
		switch {
		case err == nil && !watch:
			continue
		case watch && time.Since(began) >= steady:
			failures = 0
		default:
			failures++
		}
		if !sleep(ctx, max(pause(failures), after+rand.N(after/4+1))) {
			return
		}
	}
}

// pause is the time to the next request: 1 s, and after failures twice as long
// for each, up to 30 s. It is off by up to a quarter, so that nodes whose
// server went away do not come back to it at once.
func pause(failures int) time.Duration {
	p := min(longest, shortest<<min(max(failures-1, 0), 10))
	return p - p/4 + rand.N(p/2)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (f *feed) query() url.Values {
	return url.Values{"fieldSelector": {"spec.nodeName=" + f.w.opts.Node}}
}

// list replaces the known objects.
func (f *feed) list(ctx context.Context) error {
	f.w.mu.Lock()
	version, latest := f.version, f.latest
	f.w.mu.Unlock()
	query := f.query()
	if !latest {
		// From the server's cache, but not older than the known version.
		if version == "" {
			version = "0"
		}
		query.Set("resourceVersion", version)
		query.Set("resourceVersionMatch", "NotOlderThan")
	}
	a, err := f.w.client.get(ctx, f.paths[f.path], query)
	if err != nil {
		return err
	}
	defer a.close()
	var got struct {
		Kind     string `json:"kind"`
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []document `json:"items"`
	}
	if err := a.next(&got); err != nil {
		return err
	}
	if got.Kind != f.store.kind()+"List" || got.Metadata.ResourceVersion == "" {
		return fmt.Errorf("a %q and no %sList with a version", got.Kind, f.store.kind())
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // the kubelet has listed its pods meanwhile
	}
	now := time.Now()
	f.store.replace(got.Items, now)
	f.known, f.heard = true, now
	f.version, f.listed, f.latest = got.Metadata.ResourceVersion, true, false
	f.w.dirty = true
	return nil
}

// watch follows changes until the watch ends. It returns nil if that is in
// order.
func (f *feed) watch(ctx context.Context) error {
	f.w.mu.Lock()
	version := f.version
	f.w.mu.Unlock()
	query := f.query()
	lasts := watchLasts + rand.N(watchLasts)
	query.Set("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", version)
	query.Set("timeoutSeconds", strconv.Itoa(int(lasts/time.Second)))
	a, err := f.w.client.get(ctx, f.paths[f.path], query)
	if err != nil {
		return err
	}
	defer a.close()
	a.timer.Reset(lasts + f.w.opts.Timeout)
	if !f.begin() {
		return nil
	}
	for {
		var e event
		if err := a.next(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := f.event(ctx, &e); err != nil {
			return err
		}
	}
}

// begin notes that a watch is open, and reports whether its list is still valid:
// it may have expired since the request.
func (f *feed) begin() bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.listed {
		f.failed, f.broken, f.heard = "", false, time.Now()
	}
	return f.listed
}

// event is one event of a watch. The object of an ERROR event is a Status.
type event struct {
	Type   string `json:"type"`
	Object struct {
		document
		refusal
	} `json:"object"`
}

// event takes in one event of a watch. An ERROR event ends the watch.
func (f *feed) event(ctx context.Context, e *event) error {
	d := &e.Object.document
	switch {
	case e.Type == "ERROR":
		return &e.Object.refusal
	case d.Kind != f.store.kind():
		return fmt.Errorf("a %q of a %q and no %s", e.Type, d.Kind, f.store.kind())
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := time.Now()
	switch e.Type {
	case "ADDED", "MODIFIED":
		f.store.put(d)
	case "DELETED":
		f.store.remove(d, now)
	case "BOOKMARK":
	default:
		return fmt.Errorf("an event of type %q", e.Type)
	}
	f.heard = now
	if d.Metadata.ResourceVersion != "" {
		f.version = d.Metadata.ResourceVersion
	}
	f.w.dirty = f.w.dirty || e.Type != "BOOKMARK"
	return nil
}

// note records how a list or a watch ended, and returns the wait that the
// server requests.
func (f *feed) note(watch bool, err error) time.Duration {
	verb := "list"
	if watch {
		verb = "watch"
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.ended = true
	if err == nil {
		if watch || !f.broken { // a list does not follow changes
			f.failed = ""
		}
		return 0
	}
	f.failed = f.w.client.describe(fmt.Errorf("%s %ss: %w", verb, f.store.kind(), err))
	code, wait := refused(err)
	switch {
	case watch:
		// A server that was restored from a backup accepts a watch from a version that
		// it does not have yet, and sends nothing until it reaches it; it refuses a
		// list.
		f.listed, f.broken = false, true
	case code == http.StatusNotFound:
		f.path = (f.path + 1) % len(f.paths)
	case code == http.StatusGone, code == http.StatusGatewayTimeout, errors.Is(err, errSlow):
		// A server that was restored from a backup answers 504 to a version that
		// it does not have yet, and 410 to a version that is too old.
		f.latest = !f.latest
	}
	return wait
}
