//go:build linux && cgo

package nvidia

import "time"

// worker runs one function on a goroutine of its own, one call at a time. A
// call that does not return holds up nothing but the worker itself.
type worker[T any] struct {
	requests chan time.Time
	answers  chan T
	busy     bool
	// asked is when the call began that has not been answered yet, or the
	// last one.
	asked time.Time
}

func newWorker[T any](f func(now time.Time) T) *worker[T] {
	w := &worker[T]{requests: make(chan time.Time), answers: make(chan T, 1)}
	go func() {
		defer close(w.answers)
		for now := range w.requests {
			w.answers <- f(now)
		}
	}()
	return w
}

// start asks for a call; it is false while an earlier one has not returned.
// If one has that nobody waited for any more, take gets its answer first.
func (w *worker[T]) start(now time.Time, take func(T)) bool {
	if w.busy {
		select {
		case late := <-w.answers:
			take(late)
		default:
			return false
		}
	}
	w.requests <- now
	w.busy, w.asked = true, now
	return true
}

// wait returns the answer, unless done comes first.
func (w *worker[T]) wait(done <-chan struct{}) (T, bool) {
	select {
	case v := <-w.answers:
		w.busy = false
		return v, true
	default:
	}
	select {
	case v := <-w.answers:
		w.busy = false
		return v, true
	case <-done:
		var none T
		return none, false
	}
}

// stop ends the worker as soon as the call it is in returns.
func (w *worker[T]) stop() { close(w.requests) }

// stopped reports whether the worker has ended, waiting until done at most.
func (w *worker[T]) stopped(done <-chan struct{}) bool {
	for {
		select {
		case _, open := <-w.answers:
			if !open {
				return true
			}
		case <-done:
			return false
		}
	}
}
