package sim

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// lookEvery is the time between two checks of a mounted tree for edits.
const lookEvery = 10 * time.Millisecond

// MountTree mounts /sys and /proc of the simulation at a state file, which was
// set up for it, at Root, and follows all edits until ctx ends. Then unmount
// must be called; it ends blocked reads.
func MountTree(ctx context.Context, state string) (unmount func(), err error) {
	file := TreeFile(state)
	seen, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	tree, err := faketree.Load(file)
	if err != nil {
		return nil, err
	}
	free, err := tree.Mount(Root(state))
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// An edit replaces the file, so another file is another tree.
			now, err := os.Stat(file)
			if err != nil || os.SameFile(now, seen) {
				continue
			}
			next, err := faketree.Load(file)
			if err != nil {
				fmt.Fprintln(os.Stderr, "accel-sim: the tree stays as it is:", err)
			} else {
				tree.Adopt(next)
			}
			seen = now
		}
	}()
	return func() {
		<-done
		free()
	}, nil
}
