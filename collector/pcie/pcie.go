// Package pcie reads what the kernel's PCI core has of every accelerator on the
// bus. It needs no driver, so it still works when a driver is gone or hangs.
//
// It does not disturb the hardware. It opens the attributes of one table and
// nothing else, never writes, and never wakes a sleeping function: attributes
// that the kernel reads from configuration space are read only of a function
// that is awake. Each function has its own goroutine, so one that hangs delays
// only itself.
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
	// Dev is the directory of the node's device files. Empty: they are not
	// checked. In a container without the node's /dev their absence means
	// nothing.
	Dev string
	// Stat returns the info of a device file without opening it; os.Stat where
	// it is nil.
	Stat func(path string) (fs.FileInfo, error)
}

// Bounds on what the Source reads of a bus.
const (
	maxFunctions = 512 // of accelerators; more are an error
	maxDepth     = 16  // bridges above a function
)

const (
	// patience is how long a round waits for a function that is slower than the
	// others. After that its previous result is used until its own read is
	// overdue.
	patience = 500 * time.Millisecond
	// defaultTimeout is when a read is overdue in a round without a deadline.
	defaultTimeout = 5 * time.Second
	// renewAfter is the maximum age of an identity. A function may be replaced
	// by another one at its address between two rounds.
	renewAfter = time.Minute
)

// closeBound is how long Close waits for reads in flight.
var closeBound = 2 * time.Second

// Source reads the PCI core.
type Source struct {
	sys, proc sysfs.FS
	options   Options

	bus   bus
	slots map[string]*slot
	files map[string]*fileSlot
	cards []*card
	// had: an accelerator has been found since the start.
	had bool
	// excess reports the functions beyond maxFunctions.
	excess error
}

// New returns a Source of the bus in sys, which is /sys or a copy. proc is
// /proc or a copy; it has the device files of NVIDIA's driver.
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
