package pcie

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// identity is the properties of a function as enumerated by the kernel, and its
// driver at that time.
type identity struct {
	address                               string
	class, vendor, device                 uint32
	subsystemVendor, subsystemDevice, rev string
	numa                                  string // empty where unknown
	driver                                string
	// kind is the class of accelerator that the function belongs to, "" for none.
	kind collector.Class
	// path are the functions up to the root, itself first.
	path []string
	// virtual functions of SR-IOV are no cards: their link and their errors
	// belong to the physical function.
	virtual bool
}

// bus has every function on the bus.
type bus struct {
	fs       sysfs.FS
	names    []string
	surveyed time.Time
	known    map[string]*identity
	// err is the first error of the last survey.
	err error
}

// survey lists the bus and identifies new functions. It reports whether
// anything has changed. It reads no hardware.
func (b *bus) survey(now time.Time) (changed bool, err error) {
	names, err := b.fs.Names(devicesDir)
	if err != nil {
		return false, err
	}
	again := now.Sub(b.surveyed) >= renewAfter
	if !again && slices.Equal(names, b.names) {
		return false, nil
	}
	if again {
		b.surveyed = now
	}
	b.names, b.err = names, nil
	known := make(map[string]*identity, len(names))
	for _, name := range names {
		if !sysfs.PCIAddress(name) {
			continue
		}
		id := b.known[name]
		if id == nil || again {
			fresh, err := identify(b.fs, name)
			switch {
			case err == nil:
				id = fresh
			case errors.Is(err, errGone):
				id = nil
			case b.err == nil:
				b.err = fmt.Errorf("%s: %w", name, err)
			}
		}
		if id != nil {
			known[name] = id
		}
	}
	b.known = known
	return true, nil
}

// identify reads the identity of a function.
func identify(fs sysfs.FS, address string) (*identity, error) {
	d := openDirectory(fs, address)
	id := &identity{address: address}
	for _, number := range []struct {
		attr string
		bits int
		into *uint32
	}{{attrClass, 24, &id.class}, {attrVendor, 16, &id.vendor}, {attrDevice, 16, &id.device}} {
		text, err := d.read(number.attr)
		if err != nil {
			return nil, err
		}
		n, ok := parseID(text, number.bits)
		if !ok {
			return nil, fmt.Errorf("%s is %q", number.attr, text)
		}
		*number.into = n
	}
	// Optional properties that cannot be read are left out until the next
	// survey.
	id.driver, _ = d.driver()
	id.virtual = fs.Exists(d.path + "/physfn")
	id.kind = collector.PCIClass(collector.PCIFunction{
		Vendor: id.vendor, Device: id.device, Class: id.class, Driver: id.driver,
		External: func() bool {
			id.climb(fs)
			return len(id.path) > 1
		},
	})
	return id, nil
}

// climb reads the functions above the function.
func (id *identity) climb(fs sysfs.FS) {
	id.path = []string{id.address}
	if path, err := fs.Resolve(devicesDir + "/" + id.address); err == nil {
		id.path = ends(path, id.address)
	}
}

// describe reads the properties that only accelerators need.
func (id *identity) describe(fs sysfs.FS) {
	id.climb(fs)
	d := openDirectory(fs, id.address)
	for _, text := range []struct {
		attr string
		into *string
	}{
		{attrSubsystemVendor, &id.subsystemVendor}, {attrSubsystemDevice, &id.subsystemDevice}, {attrRevision, &id.rev}, {attrNUMANode, &id.numa},
	} {
		*text.into, _ = d.read(text.attr)
	}
	if n, err := strconv.ParseUint(id.numa, 10, 16); err != nil {
		id.numa = "" // -1 where the firmware does not set it
	} else {
		id.numa = strconv.FormatUint(n, 10)
	}
}

// accelerators returns the functions of accelerators by card, in the order of
// their addresses. Each GPU is one card; all functions in the slot of an FPGA
// belong to its card.
func (b *bus) accelerators() (cards [][]*identity, err error) {
	list := make([]*identity, 0, len(b.known))
	for _, id := range b.known {
		if !id.virtual {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b *identity) int {
		// A domain of five digits is after domains of four.
		return cmp.Or(cmp.Compare(len(a.address), len(b.address)), cmp.Compare(a.address, b.address))
	})
	fpgas := map[string]int{} // index of the card, by slot
	for _, id := range list {
		if id.kind == collector.FPGA {
			fpgas[sysfs.PCISlot(id.address)] = -1
		}
	}
	n := 0
	for _, id := range list {
		at, ofFPGA := fpgas[sysfs.PCISlot(id.address)]
		if !ofFPGA && id.kind == "" {
			continue
		}
		if n++; n > maxFunctions {
			return cards, fmt.Errorf("%s and further functions of accelerators are left out: more than %d", id.address, maxFunctions)
		}
		id.describe(b.fs)
		switch {
		case ofFPGA && at >= 0:
			cards[at] = append(cards[at], id)
			continue
		case ofFPGA:
			fpgas[sysfs.PCISlot(id.address)] = len(cards)
		}
		cards = append(cards, []*identity{id})
	}
	return cards, nil
}

// ends returns the functions from address up to the root, itself first, from
// the path of its directory:
// devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:09.0/0000:1b:00.0.
func ends(path, address string) []string {
	up := []string{address}
	parts := strings.Split(path, "/")
	for i := len(parts) - 2; i >= 0 && len(up) < maxDepth && sysfs.PCIAddress(parts[i]); i-- {
		up = append(up, parts[i])
	}
	return up
}

// parseID parses an attribute such as class or vendor, of at most bits bits:
// 0x120000.
func parseID(s string, bits int) (uint32, bool) {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || !sysfs.Hex(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, bits)
	return uint32(n), err == nil
}
