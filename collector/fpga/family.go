package fpga

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// family is one driver, or group of drivers, and how its cards are found and
// read.
type family struct {
	// name is the value of the label family of accel_fpga_info.
	name string
	// allow names every file that the family may open: patterns as of
	// path.Match, whose elements must match the last elements of a file's
	// path. Directories and links are not opened and need no leave.
	allow []string
	// watch are the directories whose entries change when a card comes or goes,
	// of the driver or the class. Where they are named, find is called only
	// when they have changed, a card has gone, or SlowInterval has passed.
	watch []string
	// find lists the cards that are there now. It runs on a goroutine of the
	// Source, not of a card, and so follows links only: it opens no file.
	find func(fs *tree) ([]place, error)
	// open returns what reads the card. It touches nothing: the files of a
	// card are listed on the card's goroutine.
	open func(e *env) card
}

// place is where a card was found.
type place struct {
	// id is the device label: a PCI address or the name of a platform device.
	id string
	// dir is the card's directory, links resolved, relative to the tree. A
	// card whose dir changes is opened anew.
	dir string
	// functions are further PCI functions of the card, in order.
	functions []string
	// claims are further directories that belong to the card, so that no
	// other family takes them for cards: those of its other functions.
	claims []string
}

// card reads one card. All its methods are called on the card's goroutine, one
// at a time; only poll has a goroutine of its own.
type card interface {
	// read reads the card once. What it leaves out of r is absent.
	read(r *reading)
}

// poller is a card that wants a look several times a second. poll runs beside
// read and must open only what the kernel answers from memory.
type poller interface {
	poll(now time.Time)
}

// closer is a card that holds something. close is its last call, after the last
// read and on the same goroutine.
type closer interface {
	close()
}

// env is what a card works with.
type env struct {
	place
	// fs reads the files that the family's allow-list names. It belongs to the
	// goroutine of read.
	fs *tree
	// pollFS is the same for poll.
	pollFS *tree
	// memory outlives the card's absence.
	memory  *memory
	options Options
	family  *family
}

// reading is one round of one card.
type reading struct {
	collector.Device
	// now is when the round began.
	now time.Time
	// gone says that the card left while it was read.
	gone bool

	fs   *tree
	errs []error
	// answered: a file that is read anew each round was.
	answered bool
}

// fail notes what could not be read. Errors beyond maxErrors are dropped.
func (r *reading) fail(err error) {
	if err != nil && len(r.errs) < maxErrors {
		r.errs = append(r.errs, err)
	}
}
