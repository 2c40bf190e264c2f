package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
)

// brokenWatches is after how many failed watches in a row the list is read
// again: where only watching fails, lists are what there is.
const brokenWatches = 3

// pageSize is the requested number of objects per page of a list. A server
// that answers from its cache may return all at once.
const pageSize = 500

// store is filled by a feed, which locks Watcher.mu for every call.
type store interface {
	kind() string
	ours(*object) bool
	replace(list []*object, now time.Time) (overflow int)
	put(*object) bool
	remove(o *object, now time.Time)
	// sweep drops the objects that were gone before the given time, or all
	// objects, and reports whether there were any.
	sweep(before time.Time, all bool) bool
	count() (there, kept int)
}

// feed lists and watches the objects of one kind.
type feed struct {
	w     *Watcher
	store store
	// paths are the paths of the resource, by version of its API, the newest first.
	paths []string
	path  int  // which of them; used by the feed's goroutine alone
	ages  bool // objects are dropped while the server does not answer

	// Guarded by Watcher.mu.
	status  FeedStatus
	version string // of the known objects
	listed  bool   // there is a list that a watch can follow
	latest  bool   // the next list has to be of the latest state
	failing bool   // the latest request failed
	broken  int    // watches that failed in a row
}

// run lists and watches until ctx is done.
func (f *feed) run(ctx context.Context) {
	for failures := 0; ; {
		began := time.Now()
		watch := f.ready()
		var err error
		if watch {
			err = f.watch(ctx)
		} else {
			err = f.list(ctx)
		}
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

// ready reports whether there is something to watch from.
func (f *feed) ready() bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.listed
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

// list reads all pages and replaces the known objects.
func (f *feed) list(ctx context.Context) error {
	f.w.mu.Lock()
	version, latest := f.version, f.latest
	f.w.mu.Unlock()
	query := f.query()
	query.Set("limit", strconv.Itoa(pageSize))
	if !latest {
		// From the server's cache, but not older than the known version.
		if version == "" {
			version = "0"
		}
		query.Set("resourceVersion", version)
		query.Set("resourceVersionMatch", "NotOlderThan")
	}
	got := &collection{feed: f}
	for {
		p, err := f.page(ctx, query, got)
		if err != nil {
			return err
		}
		got.version = p.Version
		if p.Token == "" {
			break
		}
		query = f.query()
		query.Set("limit", strconv.Itoa(pageSize))
		query.Set("continue", p.Token)
		if got.pages++; got.pages > maxPages {
			return &failure{outcome: OutcomeTooLarge, err: fmt.Errorf("a list of more than %d pages", maxPages)}
		}
		f.count(&f.status.Lists, OutcomeOK)
	}
	f.take(got)
	return nil
}

// maxPages bounds a list whose pages do not end.
const maxPages = 100

// collection is a list that is being read.
type collection struct {
	feed                *feed
	objects             []*object
	version             string
	pages, devices      int
	malformed, overflow int
}

// maxListed limits the objects of a list before they are stored.
const maxListed = maxPods + maxSlices

func (c *collection) add(o *object) {
	c.malformed += o.malformed
	c.overflow += o.overflow
	switch {
	case !c.feed.store.ours(o):
		c.malformed++
	case len(c.objects) == maxListed, c.devices+len(o.devices) > maxDevices:
		c.overflow++
	default:
		c.objects = append(c.objects, o)
		c.devices += len(o.devices)
	}
}

func (f *feed) page(ctx context.Context, query url.Values, into *collection) (page, error) {
	a, err := f.w.client.get(ctx, f.paths[f.path], query)
	if err != nil {
		return page{}, err
	}
	defer a.close()
	body := &bounded{r: a.body, end: maxBody}
	p, err := readList(body, f.store.kind(), maxObject, func(d *document) { into.add(f.keep(d)) })
	if err != nil {
		err = f.w.client.clean(failed(a.ctx, err))
	}
	return p, err
}

// keep reduces a document as the Options ask.
func (f *feed) keep(d *document) *object { return keep(d, f.w.opts.Labels, f.w.opts.Contexts) }

// watch follows what changes until the watch ends. It returns nil where that
// is in order.
func (f *feed) watch(ctx context.Context) error {
	f.w.mu.Lock()
	version, failing := f.version, f.failing
	f.w.mu.Unlock()
	if failing {
		if err := f.probe(ctx, version); err != nil {
			return err
		}
	}
	query := f.query()
	lasts := watchLasts + rand.N(watchLasts)
	query.Set("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", version)
	query.Set("timeoutSeconds", strconv.Itoa(max(1, int(lasts/time.Second))))
	a, err := f.w.client.get(ctx, f.paths[f.path], query)
	if err != nil {
		return err
	}
	defer a.close()
	a.timer.Reset(lasts + f.w.opts.Timeout)
	if !f.begin() {
		return nil
	}
	defer f.end()
	d := newDecoder(a.body, maxObject)
	for {
		e, err := readEvent(d)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f.event(&e)
		}
		if err != nil {
			return f.w.client.clean(failed(a.ctx, err))
		}
	}
}

// probe checks that the server has a version, by a list of nothing. A server
// whose store was restored from a backup does not have it and reports an error
// here. It would accept a watch from there, and send nothing until it reaches
// the version again.
func (f *feed) probe(ctx context.Context, version string) error {
	query := url.Values{
		"fieldSelector":        {"spec.nodeName=" + f.w.opts.Node + ",metadata.name=none"},
		"resourceVersion":      {version},
		"resourceVersionMatch": {"NotOlderThan"},
	}
	a, err := f.w.client.get(ctx, f.paths[f.path], query)
	if err != nil {
		if end, ok := errors.AsType[*failure](err); ok {
			end.serverBehind = end.outcome == OutcomeTimeout
		}
		return err
	}
	a.close()
	return nil
}
