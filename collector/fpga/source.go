package fpga

import (
	"cmp"
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
	lister  *lister
	finder  solo.Slot[listing]
	// listed: the cards have been listed once.
	listed bool
	slots  map[string]*slot
	// leaving are abandoned slots, until the reads they are in have returned.
	leaving  []*slot
	memories map[string]*memory
	errs     []error // of the latest listing
}

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
	l := &lister{families: list, fs: newTree(f, nil), interval: o.SlowInterval, last: map[*family]found{}}
	s := &Source{
		fs: f, options: o,
		lister:   l,
		finder:   solo.Slot[listing]{Worker: solo.New(l.list, nil)},
		slots:    map[string]*slot{},
		memories: map[string]*memory{},
	}
	return s
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// Sample implements collector.Source. It waits half a second for a card that
// has answered before, and until shortly before ctx's deadline for a card that
// has not.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	r, cancel := solo.Begin(ctx)
	defer cancel()
	s.finder.Ask(r, s.follow)
	s.finder.Valid = s.listed // an old list is better than none
	for _, sl := range s.slots {
		sl.Ask(r, sl.take)
	}
	s.finder.Gather(r, s.follow)
	errs := slices.Clone(s.errs)
	if s.finder.Stuck {
		errs = append(errs, fmt.Errorf("list cards: has not returned: %w", context.DeadlineExceeded))
	}
	var round collector.Round
	ids := slices.Sorted(maps.Keys(s.slots))
	for _, id := range ids {
		if sl := s.slots[id]; sl.Asked.IsZero() { // it was found just now
			sl.Ask(r, sl.take)
		}
	}
	for _, id := range ids {
		sl := s.slots[id]
		errs = append(errs, sl.gather(r, &round)...)
		if !sl.listed() {
			s.lister.afresh.Store(true)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.memories)) {
		round.Distributions = s.memories[id].distributions(round.Distributions)
	}
	if s.listed && len(s.memories) == 0 && len(errs) == 0 {
		return round, fmt.Errorf("no FPGA: %w", collector.ErrAbsent)
	}
	return round, errors.Join(errs...)
}

// follow opens new cards and abandons cards that have gone.
func (s *Source) follow(l listing) bool {
	s.listed, s.errs = true, l.errs
	present := make(map[string]foundPlace, len(l.places))
	for _, p := range l.places {
		present[p.id] = p
	}
	for id, sl := range s.slots {
		if p, ok := present[id]; !ok || sl.swapped || p.dir != sl.env.dir || p.family != sl.family || !slices.Equal(p.functions, sl.env.functions) {
			s.leave(id, sl)
		}
	}
	s.sweep()
	for _, p := range l.places {
		if sl := s.slots[p.id]; sl != nil {
			sl.kubeIDs = p.kubeIDs
			continue
		}
		if len(s.leaving) >= maxStuck {
			s.errs = append(s.errs, fmt.Errorf("%s: not read: %d reads of cards that left have not returned", p.id, len(s.leaving)))
			continue
		}
		sl := newSlot(p.family, &env{
			place:   p.place,
			fs:      newTree(s.fs, p.family.allow),
			pollFS:  newTree(s.fs, p.family.allow),
			memory:  s.memory(p.id),
			options: s.options,
			family:  p.family,
		})
		sl.kubeIDs = p.kubeIDs
		s.slots[p.id] = sl
	}
	return true
}

func (s *Source) leave(id string, sl *slot) {
	sl.leave()
	delete(s.slots, id)
	s.leaving = append(s.leaving, sl)
}

// sweep removes the slots whose goroutines have ended.
func (s *Source) sweep() {
	now := make(chan struct{})
	close(now)
	s.leaving = slices.DeleteFunc(s.leaving, func(sl *slot) bool { return sl.left(now) })
}

// memory returns the counters of a card, by its id. Beyond maxMemories the
// absent cards that were used longest ago are dropped.
func (s *Source) memory(id string) *memory {
	if m := s.memories[id]; m != nil {
		m.used = time.Now()
		return m
	}
	if len(s.memories) >= maxMemories {
		gone := slices.DeleteFunc(slices.Collect(maps.Keys(s.memories)), func(k string) bool { return s.slots[k] != nil })
		oldest := slices.MinFunc(gone, func(a, b string) int {
			return cmp.Or(s.memories[a].used.Compare(s.memories[b].used), cmp.Compare(a, b))
		})
		delete(s.memories, oldest)
	}
	m := newMemory(id, s.options.Emit)
	m.used = time.Now()
	s.memories[id] = m
	return m
}

// Close ends the goroutines of all cards, except goroutines in a read that does
// not return.
func (s *Source) Close() error {
	s.finder.Stop()
	for id, sl := range s.slots {
		s.leave(id, sl)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	n := 0
	for _, sl := range s.leaving {
		if !sl.left(ctx.Done()) {
			n++
		}
	}
	if !s.finder.Stopped(ctx.Done()) {
		n++
	}
	if n > 0 {
		return fmt.Errorf("%d reads have not returned", n)
	}
	return nil
}

// closeGrace is how long Close waits for the reads in flight.
var closeGrace = time.Second
