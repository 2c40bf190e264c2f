// Package solo runs one function on its own goroutine, one call at a time. A
// Source uses it to read a device whose driver may not return: a hanging call
// blocks only its Worker, and no second call is made behind it.
package solo

import "time"

// Worker runs one function. Its methods are called by one goroutine, its
// owner.
type Worker[T any] struct {
	// Busy: a call has been started and its answer has not been taken.
	Busy bool
	// Asked is when the last call was started.
	Asked time.Time

	requests chan time.Time
	answers  chan T
}

// New returns a Worker that runs f, and end, which may be nil, after it has
// been stopped.
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

// Start starts a call. It is false while a call is in flight or its answer has
// not been taken.
func (w *Worker[T]) Start(now time.Time) bool {
	if w.Busy {
		return false
	}
	w.requests <- now
	w.Busy, w.Asked = true, now
	return true
}

// Poll takes the answer if it is available.
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

// Idle reports whether no call is in flight. It drops an answer.
func (w *Worker[T]) Idle() bool {
	w.Poll()
	return !w.Busy
}

// Await waits for the answer of the call in flight until done. It takes the
// answer where both are available.
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

// Stop ends the Worker when the current call returns.
func (w *Worker[T]) Stop() { close(w.requests) }

// Stopped reports whether a stopped Worker has ended by done.
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
