package pcie

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// Sample implements collector.Source. It returns shortly before ctx's deadline
// with what has been read by then.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	now := time.Now()
	changed, err := s.bus.survey(now)
	if sysfs.Errno(err) == syscall.ENOENT {
		return collector.Round{}, fmt.Errorf("%w: no PCI bus: %w", collector.ErrAbsent, err)
	}
	if err != nil {
		return collector.Round{}, err
	}
	if changed {
		s.excess = s.arrange()
	}
	if !s.had && len(s.cards) == 0 {
		if s.bus.err != nil {
			return collector.Round{}, s.bus.err
		}
		return collector.Round{}, fmt.Errorf("%w: no accelerator on the PCI bus", collector.ErrAbsent)
	}
	s.had = true
	s.read(ctx, now)
	return s.round()
}

// withMargin shortens the deadline by a twentieth, so that the answer arrives
// before the caller gives up.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, defaultTimeout)
	}
	left := time.Until(deadline)
	return context.WithDeadline(ctx, deadline.Add(-min(left/20, 100*time.Millisecond)))
}

// arrange updates the cards and the functions to read from the bus.
func (s *Source) arrange() error {
	list, err := s.bus.accelerators()
	for _, sl := range s.slots {
		sl.wanted = false
	}
	for _, f := range s.files {
		f.wanted = false
	}
	s.cards = s.cards[:0]
	for _, ids := range list {
		s.cards = append(s.cards, s.newCard(ids))
	}
	return err
}

// function returns the slot of a function, with its own goroutine. Where its
// link must be read and was not before, the slot is replaced, unless a read is
// in flight.
func (s *Source) function(address string, link bool) *slot {
	sl := s.slots[address]
	if sl != nil && link && !sl.link && !sl.Busy {
		sl.Stop()
		sl = nil
	}
	if sl == nil {
		sl = newSlot(s.sys, address, link)
		s.slots[address] = sl
	}
	sl.wanted = true
	return sl
}

// read starts all reads at once and collects the results that arrive in time.
func (s *Source) read(ctx context.Context, now time.Time) {
	deadline, _ := ctx.Deadline()
	timeout := deadline.Sub(now)
	for address, sl := range s.slots {
		if sl.wanted {
			sl.ask(now, timeout)
		} else if _, returned := sl.Poll(); returned || !sl.Busy {
			sl.Stop()
			delete(s.slots, address)
		}
	}
	s.askFiles(now, timeout)
	soon, cancel := context.WithTimeout(ctx, min(patience, timeout/2))
	defer cancel()
	for _, sl := range s.slots {
		if sl.wanted {
			sl.gather(soon.Done(), ctx.Done(), timeout)
		}
	}
	s.gatherFiles(soon.Done(), timeout)
}

// round combines the results of the functions.
func (s *Source) round() (collector.Round, error) {
	var round collector.Round
	errs := []error{s.bus.err, s.excess}
	for _, sl := range s.slots {
		if sl.wanted && !sl.gone() && sl.err != nil {
			errs = append(errs, sl.err)
		}
	}
	for _, c := range s.cards {
		if d, ok := c.device(); ok {
			round.Devices = append(round.Devices, d)
		}
	}
	for _, sl := range s.slots {
		sl.counted = true
	}
	return round, errors.Join(errs...)
}

// Close implements collector.Source. It waits up to closeBound for reads in
// flight.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	for _, sl := range s.slots {
		sl.Stop()
	}
	for _, f := range s.files {
		f.Stop()
	}
	var errs []error
	for _, sl := range s.slots {
		if !sl.Stopped(ctx.Done()) {
			errs = append(errs, fmt.Errorf("read %s: has not returned: %w", sl.address, context.DeadlineExceeded))
		}
	}
	for _, f := range s.files {
		if !f.Stopped(ctx.Done()) {
			errs = append(errs, fmt.Errorf("read device files of %s: has not returned: %w", f.address, context.DeadlineExceeded))
		}
	}
	return errors.Join(errs...)
}
