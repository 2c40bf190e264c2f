package fpga

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// slot is one current card: its goroutines and its last result.
type slot struct {
	solo.Slot[reading]
	env  *env
	card card
	// pci identifies the card among the cards that were at its address, on the
	// card's goroutine.
	pci pciIdentity
	// known is the card's identity, without readings.
	known collector.Device
	// kubeIDs are the names of the card in the latest listing.
	kubeIDs []string
	// last is the device as it goes into a Round.
	last collector.Device
	errs []error
	// rejected are the rejects of the last result.
	rejected []collector.Reject
	// here: the card is in the latest listing. stale: it has left, or is no longer
	// the card that the slot was opened for.
	here, stale bool
}

func newSlot(e *env) *slot {
	s := &slot{env: e, card: e.family.open(e), known: e.device(), here: true}
	quit := make(chan struct{})
	var polling sync.WaitGroup
	if e.manager != nil && e.options.PollInterval > 0 {
		polling.Go(func() { poll(e, quit) })
	}
	s.Worker = solo.New(s.read, func() {
		close(quit)
		polling.Wait()
	})
	return s
}

// reads reports whether the slot was opened for the place.
func (s *slot) reads(p place) bool {
	return p.dir == s.env.dir && p.family == s.env.family && slices.Equal(p.functions, s.env.functions)
}

// read is one round of the card, on the card's goroutine.
func (s *slot) read(now time.Time) reading {
	r := reading{Device: s.env.device(), now: now, fs: s.env.fs}
	// The driver of the function that names the card: programs use the card
	// through it.
	r.Driver, _ = s.env.fs.Link(s.env.dir + "/driver")
	if sysfs.PCIAddress(s.env.id) {
		r.pci = r.readPCI(s.env.dir, s.env.options.SlowInterval)
	}
	switch {
	case r.pci.vendor == "" && s.pci.vendor != "":
		r.pci = s.pci // it is leaving
	case s.pci.vendor != "" && r.pci != s.pci:
		r.gone, r.swapped = true, true
		return r
	}
	s.pci = r.pci
	r.fail(guard(func() { s.card.read(&r) }))
	if !s.env.fs.Exists(s.env.dir) {
		r.gone = true
	}
	if r.Down == "" && !r.answered && len(r.errs) > 0 {
		r.Down = collector.ReasonError // the whole read failed
	}
	if r.Down == "" {
		r.Sampled = now
	}
	return r
}

// guard converts a panic about one card's texts to an error of that card.
func guard(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	f()
	return nil
}

// poll reads the state of a card's FPGA manager, which the kernel keeps in memory, several
// times a second until quit.
func poll(e *env, quit <-chan struct{}) {
	fs := newTree(e.fs.FS, managerFiles)
	tick := time.NewTicker(e.options.PollInterval)
	defer tick.Stop()
	for {
		_, _ = e.manager.look(fs) // read does the same, less often, and returns the error
		select {
		case <-tick.C:
		case <-quit:
			return
		}
	}
}

func (s *slot) take(r reading) bool {
	s.stale, s.errs = s.stale || r.swapped, nil
	if r.gone {
		return false // its last result is about a card that has left
	}
	s.errs = r.errs
	all := r.Rejects
	r.Rejects, s.rejected = begun(all, s.rejected), all
	if r.Sampled.Before(s.known.Sampled) {
		r.Sampled = s.known.Sampled
	}
	s.last = r.Device
	s.known = r.Device
	s.known.Readings, s.known.Rejects, s.known.Down = nil, nil, ""
	return true
}

// begun returns the rejects of now that are not in before: a sensor that is
// wrong in every round is counted once.
func begun(now, before []collector.Reject) []collector.Reject {
	known := make(map[collector.Reject]int, len(before))
	for _, j := range before {
		known[j]++
	}
	var out []collector.Reject
	for _, j := range now {
		if known[j]--; known[j] < 0 {
			out = append(out, j)
		}
	}
	return out
}

// gather adds the card to a Round.
func (s *slot) gather(r *solo.Round, round *collector.Round) []error {
	s.Gather(r, s.take)
	if s.Stuck {
		s.last = s.known
		s.last.Down = collector.ReasonStuck
		s.errs = []error{solo.NotReturned(s.env.id)}
	}
	if !s.Valid && !s.Stuck {
		return nil
	}
	d := s.last
	d.KubeIDs = s.kubeIDs
	// The Round owns the slices and the Readings that are appended.
	d.Readings = slices.Clip(d.Readings)
	s.env.memory.readings(&d)
	round.Devices = append(round.Devices, d)
	errs := s.errs
	s.last.Rejects, s.errs = nil, nil // counted already, should the result be used again
	return errs
}
