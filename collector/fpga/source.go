package fpga

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// Source reads every FPGA of the known families. It implements
// collector.Source.
type Source struct {
	fs      sysfs.FS
	options Options
	finder  solo.Slot[listing]
	// listed: the cards have been listed once.
	listed   bool
	slots    map[string]*slot
	memories map[string]*memory
	errs     []error // of the latest listing
}

// listEvery is how often a machine without a card is searched for one, a little less than
// five rounds of a second.
var listEvery = 4500 * time.Millisecond

// New returns a Source of the cards in the tree, /sys or a copy of it.
func New(f sysfs.FS, o Options) *Source { return newSource(f, o, families) }

func newSource(f sysfs.FS, o Options, list []*family) *Source {
	if o.Emit == nil {
		o.Emit = func(collector.Event) {}
	}
	if o.PollInterval == 0 {
		o.PollInterval = defaultPollInterval
	}
	if o.SlowInterval <= 0 {
		o.SlowInterval = defaultSlowInterval
	}
	l := &lister{families: list, fs: newTree(f, pciFiles), last: map[*family][]place{}}
	return &Source{
		fs: f, options: o,
		finder:   solo.Slot[listing]{Worker: solo.New(l.list, nil)},
		slots:    map[string]*slot{},
		memories: map[string]*memory{},
	}
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// Sample implements collector.Source. It waits half a second for a card that
// has answered before, and until shortly before ctx's deadline for a card that
// has not.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	r, cancel := solo.Begin(ctx)
	defer cancel()
	if len(s.slots) > 0 || s.finder.Busy || r.Begun.Sub(s.finder.Asked) >= listEvery {
		s.finder.Ask(r, s.follow)
	}
	s.finder.Valid = s.listed // an old list is better than none
	s.ask(r)
	s.finder.Gather(r, s.follow)
	s.ask(r) // cards that have just been found
	errs := slices.Clone(s.errs)
	if s.finder.Stuck {
		errs = append(errs, solo.NotReturned("the list of cards"))
	}
	var round collector.Round
	for _, id := range slices.Sorted(maps.Keys(s.slots)) {
		if sl := s.slots[id]; sl.here {
			errs = append(errs, sl.gather(r, &round)...)
		}
	}
	if s.listed && len(s.memories) == 0 && len(errs) == 0 {
		return round, fmt.Errorf("no FPGA: %w", collector.ErrAbsent)
	}
	return round, errors.Join(errs...)
}

// ask starts the reads of the cards that are present, one in a round.
func (s *Source) ask(r *solo.Round) {
	for _, sl := range s.slots {
		if !sl.stale && sl.Asked.Before(r.Begun) {
			sl.Ask(r, sl.take)
		}
	}
}

// follow opens new cards and closes cards that have gone or changed, once their
// last read has returned: a driver gets no second read behind the first.
func (s *Source) follow(l listing) bool {
	s.listed, s.errs = true, l.errs
	present := make(map[string]place, len(l.places))
	for _, p := range l.places {
		present[p.id] = p
	}
	for id, sl := range s.slots {
		p, here := present[id]
		sl.here, sl.stale = here, sl.stale || !sl.reads(p)
		if sl.stale && sl.Idle() {
			sl.Stop()
			delete(s.slots, id)
		}
	}
	for _, p := range l.places {
		if s.slots[p.id] == nil {
			s.slots[p.id] = newSlot(&env{
				place:   p,
				fs:      newTree(s.fs, p.family.allow),
				memory:  s.memory(p.id),
				options: s.options,
			})
		}
		s.slots[p.id].kubeIDs = p.kubeIDs
	}
	return true
}

// memory returns the counters of a card, by its id.
func (s *Source) memory(id string) *memory {
	if s.memories[id] == nil {
		s.memories[id] = newMemory(id, s.options.Emit)
	}
	return s.memories[id]
}

// Close ends the goroutines of all cards, except goroutines in a read that does
// not return.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	finder := map[string]*solo.Slot[listing]{"the list of cards": &s.finder}
	return errors.Join(solo.Close(ctx.Done(), s.slots), solo.Close(ctx.Done(), finder))
}

// closeGrace is how long Close waits for the reads in flight.
var closeGrace = time.Second
