package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/accel-exporter/accel-exporter/collector"
)

// file is the content of the file, as JSON.
type file struct {
	Version int      `json:"version"`
	Devices []record `json:"devices"`
	Memory  *memory  `json:"memory,omitempty"`
}

// memory has the faults of one boot.
type memory struct {
	Boot   string             `json:"boot_id"`
	Since  time.Time          `json:"since"`
	Faults []collector.Event  `json:"faults,omitempty"`
	Energy map[string]float64 `json:"energy_joules,omitempty"`
}

// record is one device: a whole one, with its place, or a partition of one.
type record struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Class  string `json:"class"`
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	PCI    string `json:"pci_address,omitempty"`
	// PCIID has the ids of vendor, device, subsystem vendor and subsystem.
	PCIID   string   `json:"pci_id,omitempty"`
	KubeIDs []string `json:"kube_ids,omitempty"`
	// Info has the labels of accel_device_info that are not empty.
	Info map[string]string `json:"info,omitempty"`
	// Answered is when it last answered, to about an hour.
	Answered time.Time `json:"answered"`
}

func recordOf(e *entry) record {
	r := record{
		ID: e.ID, Parent: e.Parent, Class: string(e.Class), Vendor: e.Vendor, Model: e.Model, PCI: e.PCI, PCIID: e.pciID,
		KubeIDs: e.KubeIDs, Info: map[string]string{}, Answered: e.Sampled.UTC().Truncate(time.Second),
	}
	for i, v := range e.info() {
		if v != "" {
			r.Info[collector.DeviceInfo.Labels[i]] = v
		}
	}
	return r
}

func (r *record) entry() entry {
	e := entry{pciID: r.PCIID, Device: collector.Device{
		ID: r.ID, Parent: r.Parent, Class: collector.Class(r.Class), Vendor: r.Vendor, Model: r.Model, PCI: r.PCI,
		KubeIDs: r.KubeIDs, Sampled: r.Answered,
	}}
	if len(r.Info) > 0 {
		labels := make([]string, len(collector.DeviceInfo.Labels))
		for i, name := range collector.DeviceInfo.Labels {
			labels[i] = r.Info[name]
		}
		e.Set(collector.DeviceInfo, 1, labels...)
	}
	return e
}

// parse reads the content of the file. The exporter wrote it, so a file with any
// mistake is damaged and refused as a whole.
func parse(name string, data []byte) ([]entry, *memory, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	entries := make([]entry, len(f.Devices))
	for i := range f.Devices {
		entries[i] = f.Devices[i].entry()
	}
	return entries, f.Memory, nil
}

func (f *file) check() error {
	if f.Version != version {
		return fmt.Errorf("found version %d; accepted is %d", f.Version, version)
	}
	if len(f.Devices) > maxDevices {
		return fmt.Errorf("found %d devices; accepted are at most %d", len(f.Devices), maxDevices)
	}
	ids := map[string]bool{}
	for i := range f.Devices {
		switch r := &f.Devices[i]; {
		case !r.valid():
			return fmt.Errorf("devices[%d] is invalid: %q", i, r.ID)
		case ids[r.ID]:
			return fmt.Errorf("devices[%d] is there a second time: %s", i, r.ID)
		default:
			ids[r.ID] = true
		}
	}
	if f.Memory != nil && len(f.Memory.Faults) > maxFaults {
		return fmt.Errorf("found %d faults; accepted are at most %d", len(f.Memory.Faults), maxFaults)
	}
	return nil
}

const (
	maxText    = 128 // bytes of a label
	maxKubeIDs = 32
)

// valid reports whether the texts can be labels, and the device can be identified.
func (r *record) valid() bool {
	if r.ID == "" || r.Vendor == "" || r.Class == "" || r.Parent == "" && r.PCI == "" || r.Answered.IsZero() || len(r.KubeIDs) > maxKubeIDs {
		return false
	}
	texts := append([]string{r.ID, r.Parent, r.Class, r.Vendor, r.Model, r.PCI, r.PCIID}, r.KubeIDs...)
	for _, text := range r.Info {
		texts = append(texts, text)
	}
	return !slices.ContainsFunc(texts, func(text string) bool {
		return len(text) > maxText || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
	})
}
