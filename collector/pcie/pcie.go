// Package pcie reads what the kernel's PCI core says of every accelerator on
// the bus, whatever its driver does: the witness that stays when a driver is
// gone or hangs.
//
// It promises to leave the hardware alone. It opens the attributes in one
// table and nothing else, never writes, and never wakes a function that sleeps:
// those attributes that the kernel answers from configuration space are read
// only of a function that is awake. Each function has a goroutine of its own,
// so one that hangs costs its own freshness only.
package pcie

import (
	"io/fs"
	"os"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// Name is the name of the Source.
const Name = "pcie"

// Options are the settings of a Source.
type Options struct {
	// Dev is the directory that holds the node's device files. Where it is
	// empty nothing is said of them: in a container that does not have the
	// node's /dev, their absence means nothing.
	Dev string
	// Stat looks at a device file without opening it; os.Stat where it is nil.
	Stat func(path string) (fs.FileInfo, error)
}

// Bounds on what a bus can make the Source hold.
const (
	maxFunctions = 512 // of accelerators; further ones are an error
	maxDepth     = 16  // bridges above a function
)

const (
	// patience is how long a round waits for a function that is slower than
	// the others. What it said last stands for it until its own read is
	// overdue.
	patience = 500 * time.Millisecond
	// defaultTimeout is when a read is overdue in a round without deadline.
	defaultTimeout = 5 * time.Second
	// renewAfter is how old an identity may be. Within it a function could be
	// removed and another one found at its address between two rounds.
	renewAfter = time.Minute
)

// closeBound is how long Close waits for reads under way.
var closeBound = 2 * time.Second

// Source reads the PCI core.
type Source struct {
	sys, proc sysfs.FS
	options   Options

	bus   bus
	slots map[string]*slot
	files map[string]*fileSlot
	cards []*card
	// had: there has been an accelerator since the start.
	had bool
	// excess names what is beyond maxFunctions.
	excess error
}

// New returns a Source of the bus that sys shows, which is /sys or a copy. proc
// is /proc or a copy, where NVIDIA's driver tells which device files it has.
func New(sys, proc sysfs.FS, o Options) *Source {
	if o.Stat == nil {
		o.Stat = os.Stat
	}
	return &Source{
		sys: sys, proc: proc, options: o,
		bus:   bus{fs: sys, known: map[string]*identity{}},
		slots: map[string]*slot{},
		files: map[string]*fileSlot{},
	}
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

var _ collector.Source = (*Source)(nil)
