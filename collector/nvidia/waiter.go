//go:build linux && cgo

package nvidia

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// waiter is the goroutine of events. It alone uses the event set: a set must be
// neither freed nor registered with during a wait.
type waiter struct {
	*events
	asker
	set nvml.EventSet
}

// run waits for events until it is stopped. After an unknown error or a lost
// GPU the driver requires a new set.
func (w *waiter) run() {
	backoff := minBackoff
	select {
	case <-w.wake: // there is a GPU to wait for
	case <-w.quit:
		return
	}
	for {
		stop, served := w.serve()
		if stop || w.refused[callSetCreate.index] || w.refused[callSetWait.index] {
			return
		}
		if served {
			backoff = minBackoff
		}
		pause := time.NewTimer(backoff)
		select {
		case <-pause.C:
		case <-w.quit:
			pause.Stop()
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// serve makes a set and delivers its events until the set fails (false) or the
// waiter is stopped (true). served distinguishes a set that has worked from a
// set that never did.
func (w *waiter) serve() (stop, served bool) {
	defer w.free()
	set, ok := ask(&w.asker, callSetCreate, w.lib.api.EventSetCreate)
	if !ok {
		w.publish(&w.asker)
		return false, false
	}
	w.set = set
	w.register(true)
	for {
		select {
		case <-w.quit:
			return true, served
		case <-w.wake:
			w.register(false)
		default:
		}
		w.wait()
		if w.failed != "" {
			w.publish(&w.asker)
			return false, served
		}
		served = true
	}
}

// register adds the GPUs that answer to the set: the new ones, or all.
func (w *waiter) register(all bool) {
	w.mu.Lock()
	list := map[nvml.Device]watched{}
	for h, g := range w.gpus {
		if all {
			g.registered = false
		}
		if g.well && !g.registered {
			list[h] = *g
		}
	}
	w.unregistered = false
	w.mu.Unlock()
	for h, g := range list {
		ok := do(&w.asker, callRegister, func() nvml.Return { return h.RegisterEvents(g.types, w.set) })
		if w.operational {
			w.registerOperational(g.id)
		}
		w.mu.Lock()
		w.gpus[h].registered = ok
		w.mu.Unlock()
		// A GPU that cannot be registered does not make the set fail.
		w.publish(&w.asker)
		w.forget()
	}
}

func (w *waiter) free() {
	if w.set != nil {
		do(&w.asker, callSetFree, w.set.Free)
		w.set = nil
		w.publish(&w.asker)
	}
}
