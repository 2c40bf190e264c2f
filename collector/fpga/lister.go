package fpga

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// listing is the cards of all families.
type listing struct {
	places []place
	errs   []error
}

// lister lists the cards of the families on its own goroutine: even a directory
// can hang.
type lister struct {
	families []*family
	fs       *tree
	// last are the cards of a family that could be listed last.
	last map[*family][]place
}

func (l *lister) list(time.Time) listing {
	var out listing
	taken := map[string]bool{}
	for _, f := range l.families {
		var places []place
		var err error
		if p := guard(func() { places, err = f.find(l.fs) }); p != nil {
			err = p
		}
		if err != nil {
			out.errs = append(out.errs, fmt.Errorf("list cards of %s: %w", f.name, err))
			places = l.last[f] // they are not known to have left
		}
		l.last[f] = places
		for _, p := range places {
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
			p.kubeIDs = append([]string{p.id}, p.kubeIDs...)
			p.family = f
			out.places = append(out.places, p)
		}
	}
	return out
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

// family is a driver or group of drivers, and how its cards are found and read.
type family struct {
	// name is the value of the label family of accel_fpga_info.
	name string
	// allow lists every file that the family may open: patterns as of
	// path.Match, matched against the last elements of a file's path.
	// Directories and links are not opened and need no entry.
	allow []string
	// find lists the current cards. It runs on a goroutine of the Source, not
	// of a card, so it follows links only and opens no file.
	find func(fs *tree) ([]place, error)
	// open returns the reader of a card. It accesses nothing: the files of a
	// card are listed on the card's goroutine.
	open func(e *env) card
}

// place is the location of a card.
type place struct {
	family *family // set by the lister
	// id is the device label: a PCI address or the name of a platform device.
	id string
	// dir is the card's directory, links resolved, relative to the tree. A card
	// whose dir changes is opened again.
	dir string
	// functions are other PCI functions of the card, in order.
	functions []string
	// claims are the directories of the card's other functions. No other family
	// takes them for cards.
	claims []string
	// kubeIDs are further names by which device plugins know the card, found
	// without opening a file: a card that hangs in its first read has them too.
	kubeIDs []string
}

// device returns the identity of the card before it is read.
func (p *place) device() collector.Device {
	d := collector.Device{ID: p.id, Class: collector.FPGA, Functions: p.functions}
	if sysfs.PCIAddress(p.id) {
		d.PCI = p.id
	}
	return d
}

// card reads one card. Its methods are called on the card's goroutine, one at a
// time; a second one polls the card's FPGA manager.
type card interface {
	// read reads the card once. What it leaves out of r is absent.
	read(r *reading)
}

// env is the environment of a card.
type env struct {
	place
	// fs reads the files on the family's allow-list. It belongs to the
	// goroutine of read.
	fs *tree
	// manager, if the card has one, is polled several times a second.
	manager *fpgaManager
	// memory outlives the card's absence.
	memory  *memory
	options Options
}

// reading is one round of one card.
type reading struct {
	collector.Device
	// now is when the round started.
	now time.Time
	// pci is the PCI core's identity of the function at the card's directory,
	// empty on SoCs.
	pci pciIdentity
	// gone: the card left while it was read. swapped: another card is there.
	gone, swapped bool

	fs   *tree
	errs []error
	// answered: a file that is not cached was read.
	answered bool
}

// fail records an error. Errors beyond maxErrors are dropped.
func (r *reading) fail(err error) {
	if err != nil && len(r.errs) < maxErrors {
		r.errs = append(r.errs, err)
	}
}

// states sets 1 for the current state and 0 for the others. labels precede the
// state.
func (r *reading) states(m *collector.Metric, states []string, state string, labels ...string) {
	for _, s := range states {
		r.SetBool(m, s == state, append(slices.Clone(labels), s)...)
	}
}

// families are all families of the Source, in the order in which they are
// searched for cards. A card found by two of them belongs to the first; soc, for
// cards of no other family, is last.
var families = []*family{&dfl, &intelFPGA, &xrt, &ami, &aws, &soc}
