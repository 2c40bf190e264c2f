package kube

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// forgetClaim is how long a claim is remembered after it was last of interest.
const forgetClaim = time.Hour

// claims has the ResourceClaims of interest. They are read one by one: no
// selector finds the claims of a node, and a watch of all would load the API server
// with every claim of the cluster on every node.
type claims struct {
	w    *Watcher
	want chan struct{}
	read chan struct{}

	// Guarded by Watcher.mu.
	progress
	of map[string]*claim // by namespace/name
}

// claim is a ResourceClaim.
type claim struct {
	asked time.Time // when it was last of interest
	since time.Time // it has to be read after this time
	read  time.Time // zero before it was read
	admin []Device  // that it has administrative access to, by their names
}

func (c *claim) due() bool { return c.read.IsZero() || c.read.Before(c.since) }

func newClaims(w *Watcher) *claims {
	return &claims{w: w, want: make(chan struct{}, 1), read: make(chan struct{}, 1), of: map[string]*claim{}}
}

// AdminAccess reports whether a claim, as namespace/name, has administrative
// access to a device: it uses the device beside its holder. It makes no request
// and returns false if the claim was not read after since. Such a claim is read
// next, and ClaimsRead yields when that is done.
func (w *Watcher) AdminAccess(name, driver, pool, device string, since time.Time) bool {
	if w.claims == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	c := w.claims.of[name]
	if c == nil {
		maps.DeleteFunc(w.claims.of, func(_ string, c *claim) bool { return now.Sub(c.asked) >= forgetClaim })
		c = &claim{}
		w.claims.of[name] = c
	}
	c.asked = now
	if since.After(c.since) {
		c.since = since
	}
	if c.due() {
		notify(w.claims.want)
	}
	return !c.read.IsZero() && !c.read.Before(since) && slices.Contains(c.admin, Device{Driver: driver, Pool: pool, Name: device})
}

// ClaimsRead yields when AdminAccess may answer otherwise than before. It is for
// one receiver, and nil if no claims are read.
func (w *Watcher) ClaimsRead() <-chan struct{} {
	if w.claims == nil {
		return nil
	}
	return w.claims.read
}

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
			case <-c.want:
			}
			continue
		}
		wait, err := c.get(ctx, path, name)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			continue
		}
		failures++
		if !sleep(ctx, max(pause(failures), wait)) {
			return
		}
	}
}

// next returns a claim that has to be read and the path of the API, whose
// version the list of slices has found.
func (c *claims) next() (path, name string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	f := c.w.sliceFeed
	if !f.known {
		return "", ""
	}
	for name, claim := range c.of {
		if claim.due() {
			return strings.TrimSuffix(f.paths[f.path], "resourceslices"), name
		}
	}
	return "", ""
}

// get reads a claim. A claim that does not exist any more is no failure.
func (c *claims) get(ctx context.Context, path, name string) (wait time.Duration, err error) {
	began := time.Now()
	admin, err := c.request(ctx, path, name)
	code, wait := refused(err)
	if code == http.StatusNotFound {
		err = nil
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.ended, c.failed = true, ""
	if err != nil {
		c.failed = c.w.client.describe(fmt.Errorf("get claims: %w", err))
		return wait, err
	}
	c.known, c.heard = true, time.Now()
	if claim := c.of[name]; claim != nil {
		claim.read, claim.admin = began, admin
		notify(c.read)
	}
	return 0, nil
}

// request returns the devices that a claim has administrative access to.
func (c *claims) request(ctx context.Context, path, name string) (admin []Device, err error) {
	namespace, base, _ := strings.Cut(name, "/")
	path += "namespaces/" + url.PathEscape(namespace) + "/resourceclaims/" + url.PathEscape(base)
	a, err := c.w.client.get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer a.close()
	var d struct {
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
	if err := a.next(&d); err != nil {
		return nil, err
	}
	if d.Kind != "ResourceClaim" {
		return nil, fmt.Errorf("a %q and no ResourceClaim", d.Kind)
	}
	for _, r := range d.Status.Allocation.Devices.Results {
		if r.AdminAccess {
			admin = append(admin, Device{Driver: r.Driver, Pool: r.Pool, Name: r.Device})
		}
	}
	return admin, nil
}
