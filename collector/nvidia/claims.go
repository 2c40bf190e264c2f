//go:build linux && cgo

package nvidia

import (
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// claims records which GPU's goroutine is inside calls to a handle. While the
// enumeration shifts, a second goroutine may get the same handle. It must not
// enter a call that hangs the first.
type claims struct {
	mu     sync.Mutex
	owners map[nvml.Device]claim
}

type claim struct {
	owner *gpu
	known []collector.Device
}

// take claims h for g until release. Where another GPU has claimed it, take
// returns what is known of that GPU.
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

// release gives up the claims of g. It reports whether g has been abandoned.
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
