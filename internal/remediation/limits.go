package remediation

import (
	"slices"
	"strings"
	"time"
)

// counts are how much is out, in each pool and over all.
type counts struct {
	limits Limits
	pools  map[string]*Pool
	hour   int // nodes taken out within the last one
}

// count counts from what stands on the nodes, so that it is the same after a
// start, and for whoever takes over.
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
		if r != nil {
			pool.Out++
		}
		for _, t := range n.history() {
			if now.Sub(t) < time.Hour {
				c.hour++
			}
		}
		switch {
		case r != nil:
			began[pool.Name] = append(began[pool.Name], r.Since)
		case w.marks() && w.firing:
			began[pool.Name] = append(began[pool.Name], w.since)
		}
	}
	for name, pool := range c.pools {
		together := crowd(began[name], p.Breaker.Window)
		pool.Open = together >= p.Breaker.Nodes && float64(together) > p.Breaker.Share*float64(pool.Nodes)
	}
	return c
}

// crowd returns how many of the times are within one window at most. Those that
// stand by themselves are nodes that fail; a crowd has one cause.
func crowd(times []time.Time, window time.Duration) (most int) {
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

// refuses says why no further node of the pool may be taken out, or nothing.
func (c *counts) refuses(name string) string {
	pool := c.pools[name]
	switch {
	case pool.Open:
		return WithheldBreaker
	case pool.Out > 0 && float64(pool.Out+1) > c.limits.Share*float64(pool.Nodes):
		return WithheldShare
	case c.hour >= c.limits.PerHour:
		return WithheldHour
	}
	return ""
}

// begin counts a node that is taken out.
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
