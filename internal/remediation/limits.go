package remediation

import (
	"slices"
	"strings"
	"time"
)

// counts are the numbers of nodes that are out.
type counts struct {
	limits Limits
	pools  map[string]*Pool
	hour   int // nodes taken out within the last hour
	back   int // nodes let in within the last hour
}

// count counts by the annotations of the nodes, so that a restarted process and
// the next leader count the same.
func (p *Policy) count(nodes []Node, wants map[string]*want, now time.Time) *counts {
	c := &counts{limits: p.Limits, pools: map[string]*Pool{}}
	began := map[string][]time.Time{}
	for i := range nodes {
		n := &nodes[i]
		pool := c.pools[p.pool(n)]
		if pool == nil {
			pool = &Pool{Name: p.pool(n)}
			c.pools[pool.Name] = pool
		}
		pool.Nodes++
		r, w := n.record(), wants[n.Name]
		switch {
		case r != nil:
			pool.Out++
		case n.Unschedulable || n.NotReady:
			pool.Down++
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
			began[pool.Name] = append(began[pool.Name], w.since)
		case r != nil:
			began[pool.Name] = append(began[pool.Name], r.Since)
		}
	}
	for name, pool := range c.pools {
		together := mostWithin(began[name], p.Breaker.Window)
		pool.Open = together >= p.Breaker.Nodes && float64(together) > p.Breaker.Share*float64(pool.Nodes)
	}
	return c
}

// inHour reports whether t is within the last hour.
func inHour(t, now time.Time) bool { return !t.After(now) && now.Sub(t) < time.Hour }

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

// refuses returns why no further node of the pool may be taken out, or "".
func (c *counts) refuses(name string) string {
	pool := c.pools[name]
	switch {
	case pool.Open:
		return WithheldBreaker
	case pool.Out > 0 && float64(pool.Out+pool.Down+1) > c.limits.Share*float64(pool.Nodes):
		return WithheldShare
	case c.hour >= c.limits.PerHour:
		return WithheldHour
	}
	return ""
}

// begin counts a node that is taken out now.
func (c *counts) begin(pool string) {
	c.pools[pool].Out++
	c.hour++
}

func (c *counts) list() []Pool {
	list := make([]Pool, 0, len(c.pools))
	for _, p := range c.pools {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return list
}
