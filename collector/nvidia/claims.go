//go:build linux && cgo

package nvidia

import (
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// claims says which GPU's goroutine is in calls to a handle. While the
// enumeration shifts, a second one may come by the same handle: it must not
// follow the first into a call that hangs.
type claims struct {
	mu     sync.Mutex
	owners map[nvml.Device]claim
}

type claim struct {
	owner *gpu
	known []collector.Device
}

// take makes h g's until release. Where it is another's, it returns what is
// known of the GPU.
func (c *claims) take(h nvml.Device, g *gpu) ([]collector.Device, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had, ok := c.owners[h]; ok && had.owner != g {
		return had.known, false
	}
	mine := claim{owner: g}
	if h == g.handle {
		mine.known = g.known
	}
	c.owners[h] = mine
	return nil, true
}

// release gives back what g has taken. It reports whether nobody waits for g
// any more.
func (c *claims) release(g *gpu) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h, had := range c.owners {
		if had.owner == g {
			delete(c.owners, h)
		}
	}
	return g.left.Load()
}
