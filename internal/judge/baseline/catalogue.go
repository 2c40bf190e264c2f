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
	Class  string  `yaml:"class,omitempty" accept:"gpu|fpga|switch"`
	Vendor Pattern `yaml:"vendor,omitempty"`
	// Model is the product name in accel_device_info.
	Model Pattern `yaml:"model,omitempty"`
	// PCIID is the device's PCI vendor and device id.
	PCIID PCIID `yaml:"pci_id,omitempty"`
	// Labels are the labels of the node, from --node.label.
	Labels map[string]Pattern `yaml:"labels,omitempty"`
}

// Approved has the approved values of each component. A component that is not
// named is not compared.
type Approved struct {
	// Driver is the version of the vendor's driver stack.
	Driver []Pattern `yaml:"driver,flow,omitempty"`
	// CUDA is the newest CUDA version that the driver supports.
	CUDA []Pattern `yaml:"cuda,flow,omitempty"`
	// Module is the kernel driver that is bound to the device, or none.
	Module []Pattern `yaml:"module,flow,omitempty"`
	// MIG are the approved layouts.
	MIG []Layout `yaml:"mig,flow,omitempty"`
	// Firmware is by component of accel_firmware_info.
	Firmware map[string][]Pattern `yaml:"firmware,omitempty"`
	// Bitstream is by kind of accel_fpga_bitstream_info, or by region/kind
	// if the regions of a card differ.
	Bitstream map[string][]Pattern `yaml:"bitstream,omitempty"`
	// RootKey is by key of accel_fpga_root_key_info.
	RootKey map[string][]Pattern `yaml:"root_key,omitempty"`
}

// Parse decodes the content of a file; name is the file name in errors, which are
// of type strict.Mistakes.
func Parse(name string, data []byte) (*Catalogue, error) {
	c := new(Catalogue)
	if err := strict.Decode(name, data, c); err != nil {
		return nil, err
	}
	if len(c.Entries) == 0 {
		return nil, strict.Mistakes{{File: name, Line: 1, Path: "entries", Text: "found no entry; accepted is at least one, or no baseline at all"}}
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
	if err := checkSet(a.MIG, sectionMIG); err != nil {
		return err
	}
	for _, section := range []string{sectionDriver, sectionCUDA, sectionModule} {
		if err := checkSet(*a.list(section), section); err != nil {
			return err
		}
	}
	for _, section := range []string{sectionFirmware, sectionBitstream, sectionRootKey} {
		table := *a.table(section)
		if err := checkTable(section, table); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if err := checkSet(table[name], section, name); err != nil {
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

// list returns the approved values of a section without a table, except MIG's.
func (a *Approved) list(section string) *[]Pattern {
	return map[string]*[]Pattern{sectionDriver: &a.Driver, sectionCUDA: &a.CUDA, sectionModule: &a.Module}[section]
}

// table returns the approved values of a section with a table.
func (a *Approved) table(section string) *map[string][]Pattern {
	return map[string]*map[string][]Pattern{sectionFirmware: &a.Firmware, sectionBitstream: &a.Bitstream, sectionRootKey: &a.RootKey}[section]
}

// set returns the approved values of a component, nil if it is not compared.
func (a *Approved) set(section, name string) []Pattern {
	if list := a.list(section); list != nil {
		return *list
	}
	table := *a.table(section)
	if set, ok := table[name]; ok || section != sectionBitstream {
		return set
	}
	return table[name[strings.LastIndexByte(name, '/')+1:]]
}

// add approves a value.
func (a *Approved) add(f fact) {
	if f.section == sectionMIG {
		a.MIG = appendNew(a.MIG, Layout(f.value))
	} else if list := a.list(f.section); list != nil {
		*list = appendNew(*list, Pattern(f.value))
	} else {
		table := a.table(f.section)
		if *table == nil {
			*table = map[string][]Pattern{}
		}
		(*table)[f.name] = appendNew((*table)[f.name], Pattern(f.value))
	}
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
