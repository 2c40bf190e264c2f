// Package pcie reads what the kernel's PCI core has of every accelerator on the
// bus. It needs no driver, so it still works when a driver is gone or hangs.
//
// It does not disturb the hardware. It opens the attributes of one table and
// nothing else, never writes, and never wakes a sleeping function: attributes
// that the kernel reads from configuration space are read only of a function
// that is awake. Each function has its own goroutine, so a function that hangs delays
// only itself.
//
// A GPU of NVIDIA's driver has the identity that the driver shows in procfs, so
// that it keeps its name when NVML cannot read it.
package pcie

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// Name is the name of the Source.
const Name = "pcie"

// Options are the settings of a Source.
type Options struct {
	// Dev is the directory of the node's device files. Empty: they are not
	// checked. In a container without the node's /dev their absence means
	// nothing.
	Dev string
	// Stat returns the info of a device file without opening it; os.Stat where
	// it is nil.
	Stat func(path string) (fs.FileInfo, error)
	// Names has the models of GPUs that no other Source reads.
	Names *collector.PCINames
}

// Bounds on what the Source reads of a bus.
const (
	maxFunctions = 512 // of accelerators; more are an error
	maxDepth     = 16  // bridges above a function
)

// renewAfter is the maximum age of an identity. A function may be replaced by
// another one at its address between two rounds.
const renewAfter = time.Minute

// readEvery is how often a function is read, with its driver: seven files each cost
// more than all else that a round does. It is a little less than five rounds of a
// second. The bus is listed in each round, so a function that comes or goes is seen
// at once.
var readEvery = 4500 * time.Millisecond

// closeBound is how long Close waits for reads in flight.
var closeBound = 2 * time.Second

// Source reads the PCI core.
type Source struct {
	sys, proc sysfs.FS
	options   Options

	bus     bus
	slots   map[string]*slot
	drivers map[string]*driverSlot
	cards   []*card
	// had: an accelerator has been found since the start.
	had bool
	// excess reports the functions beyond maxFunctions.
	excess error
	// last and err are the result of the last round that read something.
	last collector.Round
	err  error
}

// New returns a Source of the bus in sys, which is /sys or a copy. proc is
// /proc or a copy; NVIDIA's driver shows its GPUs there.
func New(sys, proc sysfs.FS, o Options) *Source {
	if o.Stat == nil {
		o.Stat = os.Stat
	}
	return &Source{
		sys: sys, proc: proc, options: o,
		bus:     bus{fs: sys, known: map[string]*identity{}},
		slots:   map[string]*slot{},
		drivers: map[string]*driverSlot{},
	}
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

var _ collector.Source = (*Source)(nil)

// Sample implements collector.Source. It returns shortly before ctx's deadline
// with what has been read by then.
func (s *Source) Sample(ctx context.Context) (collector.Round, error) {
	r, cancel := solo.Begin(ctx)
	defer cancel()
	changed, err := s.bus.survey(r.Begun)
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
	if s.read(r) || changed {
		s.last, s.err = s.round()
	}
	round := collector.Round{Devices: slices.Clone(s.last.Devices)}
	for i := range round.Devices {
		d := &round.Devices[i]
		d.Readings = slices.Clip(d.Readings)
		s.last.Devices[i].Rejects = nil // they are counted once
	}
	return round, s.err
}

// arrange updates the cards and the functions to read from the bus.
func (s *Source) arrange() error {
	list, err := s.bus.accelerators()
	for _, sl := range s.slots {
		sl.wanted = false
	}
	for _, f := range s.drivers {
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

// due reports whether a Worker is to be asked in a round, or has been.
func due[T any](r *solo.Round, w *solo.Worker[T]) bool {
	return w.Busy || r.Begun.Sub(w.Asked) >= readEvery
}

// read starts all reads that are due at once and collects the results that arrive in
// time. It reports whether there were any.
func (s *Source) read(r *solo.Round) (asked bool) {
	for address, sl := range s.slots {
		if sl.wanted {
			if due(r, sl.Worker) {
				sl.Ask(r, sl.take)
				asked = true
			}
		} else if sl.Idle() {
			sl.Stop()
			delete(s.slots, address)
		}
	}
	asked = s.askDrivers(r) || asked
	for _, sl := range s.slots {
		if sl.wanted {
			sl.gather(r)
		}
	}
	brief := *r // their results are additions
	brief.End = r.Soon
	for _, f := range s.drivers {
		if f.wanted {
			f.Gather(&brief, f.take)
		}
	}
	return asked
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
	return errors.Join(solo.Close(ctx.Done(), s.slots), solo.Close(ctx.Done(), s.drivers))
}
