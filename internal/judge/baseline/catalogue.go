package baseline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Catalogue is the content of a file of approved configurations.
type Catalogue struct {
	// Entries are tried in order; the first match applies.
	Entries []Entry `yaml:"entries"`
}

// Entry is the approved configuration of one class of hardware.
type Entry struct {
	// Name is the label entry of accel_baseline_info.
	Name     Pattern  `yaml:"name"`
	Match    Match    `yaml:"match"`
	Approved Approved `yaml:"approved"`
}

// Match selects the devices of an entry: devices that meet all given criteria.
type Match struct {
	Class  string  `yaml:"class" accept:"gpu|fpga|switch"`
	Vendor Pattern `yaml:"vendor"`
	// Model is the product name in accel_device_info.
	Model Pattern `yaml:"model"`
	// PCIID is the device's PCI vendor and device id.
	PCIID PCIID `yaml:"pci_id"`
	// Labels are the labels of the node, from --node.label.
	Labels map[string]Pattern `yaml:"labels"`
}

// Approved has the approved values of each component. A component that is not
// named is not compared.
type Approved struct {
	// Driver is the version of the vendor's driver stack.
	Driver []Pattern `yaml:"driver"`
	// CUDA is the newest CUDA version that the driver supports.
	CUDA []Pattern `yaml:"cuda"`
	// Module is the kernel driver that is bound to the device, or none.
	Module []Pattern `yaml:"module"`
	// MIG are the approved layouts.
	MIG []Layout `yaml:"mig"`
	// Firmware is by component of accel_firmware_info.
	Firmware map[string][]Pattern `yaml:"firmware"`
	// Bitstream is by kind of accel_fpga_bitstream_info, or by region/kind
	// if the regions of a card differ.
	Bitstream map[string][]Pattern `yaml:"bitstream"`
	// RootKey is by key of accel_fpga_root_key_info.
	RootKey map[string][]Pattern `yaml:"root_key"`
}

// Parse decodes the content of a file; name is the file name in errors, which are
// of type strict.Mistakes.
func Parse(name string, data []byte) (*Catalogue, error) {
	c := new(Catalogue)
	if err := strict.Decode(name, data, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Load reads the file at path. The error is of type strict.Mistakes if the content
// is invalid.
func Load(path string) (*Catalogue, error) {
	data, err := strict.NewFile(path).Read()
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return Parse(path, data)
}

// Check implements strict.Checker.
func (c *Catalogue) Check() error {
	for i := range c.Entries {
		e := &c.Entries[i]
		for j := range c.Entries[:i] {
			switch before := &c.Entries[j]; {
			case before.Name == e.Name:
				return strict.At(fmt.Errorf("found %s a second time, first at entries[%d]; accepted is once", wording.Quote(string(e.Name)), j), "entries", i, "name")
			case before.Match.covers(&e.Match):
				return strict.At(fmt.Errorf("found %s, which never applies: entries[%d] (%s) comes first and matches all that it matches; accepted are special entries before general ones", wording.Quote(string(e.Name)), j, before.Name), "entries", i)
			}
		}
	}
	return nil
}

// Check implements strict.Checker.
func (e *Entry) Check() error {
	if e.Name == "" {
		return errors.New("found no name; accepted is an entry with one")
	}
	return nil
}

// Check implements strict.Checker.
func (m *Match) Check() error { return checkTable("labels", m.Labels) }

// Check implements strict.Checker.
func (a *Approved) Check() error {
	for _, err := range []error{
		checkSet(a.Driver, sectionDriver), checkSet(a.CUDA, sectionCUDA), checkSet(a.Module, sectionModule), checkSet(a.MIG, sectionMIG),
	} {
		if err != nil {
			return err
		}
	}
	for _, t := range []struct {
		key  string
		sets map[string][]Pattern
	}{{sectionFirmware, a.Firmware}, {sectionBitstream, a.Bitstream}, {sectionRootKey, a.RootKey}} {
		if err := checkTable(t.key, t.sets); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(t.sets)) {
			if err := checkSet(t.sets[name], t.key, name); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Firmware)) {
		if reserved(name) {
			return strict.At(fmt.Errorf("found %s as a key; accepted are the components of accel_firmware_info", wording.Quote(name)), sectionFirmware, name)
		}
	}
	return nil
}

// checkSet rejects an empty set of approved values, which is ambiguous: nothing
// approved, or nothing compared.
func checkSet[V any](set []V, at ...any) error {
	if set != nil && len(set) == 0 {
		return strict.At(errors.New("found an empty list; accepted is at least one value"), at...)
	}
	return nil
}

// checkTable rejects keys that are invalid as label values.
func checkTable[V any](key string, table map[string]V) error {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if err := checkText(name); err != nil {
			return strict.At(fmt.Errorf("as a key: %w", err), key, name)
		}
	}
	return nil
}

// reserved reports whether the name of a firmware component conflicts with a
// component of another section.
func reserved(name string) bool {
	switch name {
	case sectionDriver, sectionCUDA, sectionModule, sectionMIG:
		return true
	}
	return strings.Contains(name, "/")
}
