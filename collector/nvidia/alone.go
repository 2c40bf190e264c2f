//go:build linux && cgo

package nvidia

import (
	"sync/atomic"
	"time"
)

// turn is the right to make a call that must be made alone, of one goroutine at
// a time. Parallel GPM calls for several GPUs crash some drivers.
type turn struct {
	taken chan struct{} // capacity 1
	moved atomic.Int64  // when it was last taken or left, in nanoseconds
}

// turnLimit is how long a call may hold the turn. A call that takes longer hangs
// in the kernel, where it disturbs no other; the calls of other GPUs must not
// wait for it.
const turnLimit = 250 * time.Millisecond

var currentTurn atomic.Pointer[turn]

func init() { currentTurn.Store(newTurn()) }

func newTurn() *turn { return &turn{taken: make(chan struct{}, 1)} }

// enterAlone waits for the turn and returns it.
func enterAlone() *turn {
	for {
		t := currentTurn.Load()
		select {
		case t.taken <- struct{}{}:
		default:
			limit := time.NewTimer(turnLimit)
			select {
			case t.taken <- struct{}{}:
				limit.Stop()
			case <-limit.C:
				if time.Now().UnixNano()-t.moved.Load() >= int64(turnLimit) {
					currentTurn.CompareAndSwap(t, newTurn())
				}
				continue
			}
		}
		t.moved.Store(time.Now().UnixNano())
		if t == currentTurn.Load() {
			return t
		}
		<-t.taken
	}
}

func (t *turn) leave() {
	t.moved.Store(time.Now().UnixNano())
	<-t.taken
}
