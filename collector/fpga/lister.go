package fpga

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// listing is the cards of all families.
type listing struct {
	places []foundPlace
	errs   []error
}

type foundPlace struct {
	place
	family *family
}

// lister lists the cards of the families on its own goroutine: even a directory
// can hang.
type lister struct {
	families []*family
	fs       *tree
	interval time.Duration
	last     map[*family]found
	// afresh: a card was gone when it was read.
	afresh atomic.Bool
}

// found is the last result of a family.
type found struct {
	places  []place
	at      time.Time
	watched []string
	err     error
}

func (l *lister) list(now time.Time) listing {
	var out listing
	taken := map[string]bool{}
	afresh := l.afresh.Swap(false)
	for _, f := range l.families {
		last := l.find(f, now, afresh)
		if last.err != nil {
			out.errs = append(out.errs, fmt.Errorf("list cards of %s: %w", f.name, last.err))
		}
		for _, p := range last.places {
			if taken[p.id] || within(taken, p.dir) {
				continue
			}
			if len(out.places) >= maxCards {
				out.errs = append(out.errs, fmt.Errorf("more than %d cards: %s left out", maxCards, p.id))
				break
			}
			taken[p.id], taken[p.dir] = true, true
			for _, c := range p.claims {
				taken[c] = true
			}
			out.places = append(out.places, foundPlace{p, f})
		}
	}
	return out
}

// find returns the cards of a family. While the watched directories are
// unchanged, so are the cards.
func (l *lister) find(f *family, now time.Time, afresh bool) found {
	last, known := l.last[f]
	var watched []string
	for _, dir := range f.watch {
		names, _ := l.fs.Names(dir) // find returns the error
		watched = append(append(watched, dir), names...)
	}
	if known && !afresh && last.err == nil && len(f.watch) > 0 && now.Sub(last.at) < l.interval && slices.Equal(watched, last.watched) {
		return last
	}
	var places []place
	var err error
	if p := guard(func() { places, err = f.find(l.fs) }); p != nil {
		err = p
	}
	if err != nil {
		places = last.places // they are not known to have left
	}
	l.last[f] = found{places, now, watched, err}
	return l.last[f]
}

// within reports whether dir, or a directory above it, is taken.
func within(taken map[string]bool, dir string) bool {
	for dir != "" {
		if taken[dir] {
			return true
		}
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
	}
	return false
}
