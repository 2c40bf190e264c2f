package remediation

import (
	"maps"
	"slices"
	"time"
)

// counts are the numbers of nodes and devices that are out.
type counts struct {
	limits Limits
	pools  map[string]*Pool
	hour   int // nodes and devices taken out within the last hour
	back   int // nodes and devices let in within the last hour
}

// count counts by the annotations of nodes and rules, so that a restarted process and
// the next leader count the same. A node of which devices are out counts as a node that
// is out, once.
func (p *Policy) count(subjects []Node, wants map[string]*want, now time.Time) *counts {
	c := &counts{limits: p.Limits, pools: map[string]*Pool{}}
	began := map[string]map[string]time.Time{} // by pool and node
	for i := range subjects {
		n := &subjects[i]
		pool := c.pools[p.pool(n)]
		if pool == nil {
			pool = &Pool{Name: p.pool(n), ours: map[string]bool{}}
			c.pools[pool.Name], began[pool.Name] = pool, map[string]time.Time{}
		}
		r, w := n.record(), wants[n.key()]
		if n.Device == nil {
			pool.Nodes++
		}
		if r != nil {
			pool.out(n)
		}
		// A kubelet can write any time into the annotations of its node, so each node
		// counts once.
		within := func(t time.Time) bool { return inHour(t, now) }
		if slices.ContainsFunc(n.history(), within) {
			c.hour++
		}
		if within(n.returned()) {
			c.back++
		}
		// The clock of the breaker starts at the alert that requires the present action.
		switch {
		case w != nil && w.firing && (r == nil || w.since.After(r.Since)):
			began[pool.Name][n.Name] = later(began[pool.Name][n.Name], w.since)
		case r != nil:
			began[pool.Name][n.Name] = later(began[pool.Name][n.Name], r.Since)
		}
	}
	for i := range subjects {
		n := &subjects[i]
		if pool := c.pools[p.pool(n)]; n.Device == nil && (n.Unschedulable || n.NotReady) && !pool.ours[n.Name] {
			pool.Down++
		}
	}
	for name, pool := range c.pools {
		together := mostWithin(slices.Collect(maps.Values(began[name])), p.Breaker.Window)
		pool.Open = together >= p.Breaker.Nodes && float64(together) > p.Breaker.Share*float64(pool.Nodes)
	}
	return c
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// out counts a node or device that is out.
func (p *Pool) out(n *Node) {
	p.ours[n.Name] = true
	if n.Device == nil {
		p.Out++
	} else {
		p.Devices++
	}
}

// inHour reports whether t is within the last hour. The clock of another leader may be
// ahead.
func inHour(t, now time.Time) bool { return now.Sub(t).Abs() < time.Hour }

// mostWithin returns the largest number of times within one window. Many nodes
// that begin to fail together have one cause.
func mostWithin(times []time.Time, window time.Duration) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	first := 0
	for i, t := range times {
		for t.Sub(times[first]) > window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func (c *counts) open(pool string) bool { return c.pools[pool].Open }

// refuses returns why the node or device may not be taken out, or "".
func (c *counts) refuses(name string, n *Node) string {
	pool := c.pools[name]
	ours := len(pool.ours)
	switch {
	case pool.Open:
		return WithheldBreaker
	case ours > 0 && !pool.ours[n.Name] && float64(ours+pool.Down+1) > c.limits.Share*float64(pool.Nodes):
		return WithheldShare
	case c.hour >= c.limits.PerHour:
		return WithheldHour
	}
	return ""
}

// begin counts a node or device that is taken out now.
func (c *counts) begin(pool string, n *Node) {
	c.pools[pool].out(n)
	c.hour++
}

func (c *counts) list() []Pool {
	list := []Pool{}
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		list = append(list, *c.pools[name])
	}
	return list
}
