package peer

import (
	"context"
	"time"
)

// Times between two attempts.
const (
	backoffMin  = 500 * time.Millisecond
	backoffMax  = time.Minute
	steadyAfter = time.Minute // a program that lived this long has no history
)

// Keep has a program run until ctx is done. attempt starts it and returns when
// it is gone: how long it lived, and whether the next is to be started at
// once. Pauses between two grow; a kick ends one.
func Keep(ctx context.Context, kick <-chan struct{}, attempt func() (lived time.Duration, again bool)) {
	var backoff time.Duration
	for ctx.Err() == nil {
		lived, again := attempt()
		if lived > steadyAfter {
			backoff = 0
		}
		backoff = min(max(2*backoff, backoffMin), backoffMax)
		pause := backoff
		if again {
			pause = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-kick:
			backoff = 0
		}
	}
}
