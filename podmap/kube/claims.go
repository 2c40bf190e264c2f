package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxClaims limits the claims that are remembered, and forgetClaim is how long
// one is remembered after it was last of interest.
const (
	maxClaims   = 1024
	forgetClaim = time.Hour
)

// claims has the ResourceClaims of interest. They are read one by one: no
// selector finds the claims of a node, and a watch of all would load the API server
// with every claim of the cluster on every node.
type claims struct {
	w     *Watcher
	wants chan struct{}
	read  chan struct{}

	// Guarded by Watcher.mu.
	status  FeedStatus
	failing bool
	known   map[string]*claim // by namespace/name
}

// claim is a ResourceClaim.
type claim struct {
	asked time.Time // when it was last of interest
	since time.Time // it has to be read after
	read  time.Time // zero if it was not
	admin []Device  // that it has administrative access to, as it names them
}

func (c *claim) due() bool { return c.read.IsZero() || c.read.Before(c.since) }

// AdminAccess reports whether a claim, as namespace/name, has administrative
// access to a device: it uses the device beside its holder. It makes no request
// and returns false if the claim was not read after since. Such a claim is read
// next, and ClaimsRead yields when that is done.
func (w *Watcher) AdminAccess(name, driver, pool, device string, since time.Time) bool {
	if len(w.feeds) < 2 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	c := w.claims.known[name]
	if c == nil {
		maps.DeleteFunc(w.claims.known, func(_ string, c *claim) bool { return now.Sub(c.asked) >= forgetClaim })
		if len(w.claims.known) >= maxClaims {
			w.claims.status.Overflow++
			return false
		}
		c = &claim{}
		w.claims.known[name] = c
	}
	c.asked = now
	if since.After(c.since) {
		c.since = since
	}
	if c.due() {
		notify(w.claims.wants)
	}
	return !c.read.IsZero() && !c.read.Before(since) && slices.Contains(c.admin, Device{Driver: driver, Pool: pool, Name: device})
}

// ClaimsRead yields when AdminAccess may answer otherwise than before. It is for
// one receiver.
func (w *Watcher) ClaimsRead() <-chan struct{} { return w.claims.read }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run reads claims until ctx is done.
func (c *claims) run(ctx context.Context) {
	for failures := 0; ; {
		path, name := c.next()
		if name == "" {
			select {
			case <-ctx.Done():
				return
			case <-c.wants:
			}
			continue
		}
		err := c.get(ctx, path, name)
		if ctx.Err() != nil {
			return
		}
		if after, ok := c.note(err); ok {
			failures = 0
		} else if failures++; !sleep(ctx, max(pause(failures), after)) {
			return
		}
	}
}

// next returns a claim that has to be read and the path of the API, whose
// version the list of slices has found.
func (c *claims) next() (path, name string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	f := c.w.feeds[1]
	if f.status.Listed.IsZero() {
		return "", ""
	}
	for name, claim := range c.known {
		if claim.due() {
			return strings.TrimSuffix(f.paths[f.path], "resourceslices"), name
		}
	}
	return "", ""
}

func (c *claims) get(ctx context.Context, path, name string) error {
	began := time.Now()
	namespace, base, _ := strings.Cut(name, "/")
	path += "namespaces/" + url.PathEscape(namespace) + "/resourceclaims/" + url.PathEscape(base)
	var doc struct {
		Kind   string `json:"kind"`
		Status struct {
			Allocation struct {
				Devices struct {
					Results []struct {
						Driver      string `json:"driver"`
						Pool        string `json:"pool"`
						Device      string `json:"device"`
						AdminAccess bool   `json:"adminAccess"`
					} `json:"results"`
				} `json:"devices"`
			} `json:"allocation"`
		} `json:"status"`
	}
	a, err := c.w.client.get(ctx, path, nil)
	if err == nil {
		defer a.close()
		if err = newDecoder(a.body, maxObject).value(&doc); err == nil && doc.Kind != "ResourceClaim" {
			err = fmt.Errorf("%w: a %q and no ResourceClaim", errKind, clip(doc.Kind))
		}
		if err != nil {
			return c.w.client.clean(failed(a.ctx, err))
		}
	} else if end, ok := errors.AsType[*failure](err); !ok || end.outcome != OutcomeNotFound {
		return err
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	claim := c.known[name]
	if claim == nil {
		return err
	}
	claim.read, claim.admin = began, nil
	for _, r := range doc.Status.Allocation.Devices.Results {
		if r.AdminAccess {
			claim.admin = append(claim.admin, Device{Driver: r.Driver, Pool: r.Pool, Name: r.Device})
		}
	}
	notify(c.read)
	return err
}

// note records the outcome of a request. A claim that does not exist any more
// is no failure.
func (c *claims) note(err error) (after time.Duration, ok bool) {
	outcome := OutcomeOK
	if end, failed := errors.AsType[*failure](err); failed {
		outcome, after = end.outcome, end.after
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	s, now := &c.status, time.Now()
	s.Lists[outcome]++
	s.Last = outcome
	if c.failing = err != nil && outcome != OutcomeNotFound; c.failing {
		s.LastError, s.LastErrorTime = fmt.Sprintf("get claims: %v", err), now
		return after, false
	}
	s.Listed, s.LastMessage = now, now
	return 0, true
}

// describe returns a copy of the status as of now.
func (c *claims) describe(now time.Time) FeedStatus {
	s := c.status.at(now)
	s.State, s.Reason = s.state(c.failing, false)
	s.Objects = len(c.known)
	return s
}
