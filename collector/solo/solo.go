// Package solo runs one function on a goroutine of its own, one call at a
// time. It is how a Source reads a device whose driver may not return: a call
// that does not holds up nothing but its own Worker, and no second one goes
// behind it.
package solo

import "time"

// Worker runs one function. Its methods are called by one goroutine, its
// owner.
type Worker[T any] struct {
	// Busy: a call has been asked for whose answer has not been taken.
	Busy bool
	// Asked is when the last call was asked for.
	Asked time.Time

	requests chan time.Time
	answers  chan T
}

// New returns a Worker that runs f and, once it has been stopped, end, which
// may be nil.
func New[T any](f func(now time.Time) T, end func()) *Worker[T] {
	w := &Worker[T]{requests: make(chan time.Time, 1), answers: make(chan T, 1)}
	go func() {
		defer close(w.answers)
		if end != nil {
			defer end()
		}
		for now := range w.requests {
			w.answers <- f(now)
		}
	}()
	return w
}

// Start asks for a call; it is false while an earlier one is under way or its
// answer has not been taken.
func (w *Worker[T]) Start(now time.Time) bool {
	if w.Busy {
		return false
	}
	w.requests <- now
	w.Busy, w.Asked = true, now
	return true
}

// Poll takes the answer if it is there.
func (w *Worker[T]) Poll() (answer T, ok bool) {
	if !w.Busy {
		return answer, false
	}
	select {
	case answer = <-w.answers:
		w.Busy = false
		return answer, true
	default:
		return answer, false
	}
}

// Await takes the answer of the call under way, unless done comes first; where
// both have come, it takes it.
func (w *Worker[T]) Await(done <-chan struct{}) (answer T, ok bool) {
	if answer, ok = w.Poll(); ok || !w.Busy {
		return answer, ok
	}
	select {
	case answer = <-w.answers:
		w.Busy = false
		return answer, true
	case <-done:
		return answer, false
	}
}

// Stop ends the Worker as soon as the call it is in returns.
func (w *Worker[T]) Stop() { close(w.requests) }

// Stopped reports whether a Worker that was told to stop has ended by done.
func (w *Worker[T]) Stopped(done <-chan struct{}) bool {
	for {
		select {
		case _, open := <-w.answers:
			if !open {
				return true
			}
			continue
		default:
		}
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
