package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// file is the content of the file, as JSON.
type file struct {
	Version int     `json:"version"`
	Devices []entry `json:"devices"`
	Memory  *memory `json:"memory,omitempty"`
}

// memory has the faults of one boot.
type memory struct {
	Boot   string             `json:"boot_id"`
	Since  time.Time          `json:"since"`
	Faults []collector.Event  `json:"faults,omitempty"`
	Energy map[string]float64 `json:"energy_joules,omitempty"`
}

// entry is one device: a whole one, with its place, or a partition of one.
type entry struct {
	ID     string          `json:"id"`
	Parent string          `json:"parent,omitempty"`
	Class  collector.Class `json:"class"`
	Vendor string          `json:"vendor"`
	Model  string          `json:"model"`
	PCI    string          `json:"pci_address,omitempty"`
	// PCIID has the ids of vendor, device, subsystem vendor and subsystem.
	PCIID   string   `json:"pci_id,omitempty"`
	KubeIDs []string `json:"kube_ids,omitempty"`
	// Info has the labels of accel_device_info that are not empty.
	Info map[string]string `json:"info,omitempty"`
	// Answered is when it last answered, to about an hour.
	Answered time.Time `json:"answered"`
}

// device returns the device as a source would report it; Sampled is when it last answered.
func (e *entry) device() collector.Device {
	d := collector.Device{
		ID: e.ID, Parent: e.Parent, Class: e.Class, Vendor: e.Vendor, Model: e.Model, PCI: e.PCI,
		KubeIDs: e.KubeIDs, Sampled: e.Answered,
	}
	if len(e.Info) > 0 {
		labels := make([]string, len(collector.DeviceInfo.Labels))
		for i, name := range collector.DeviceInfo.Labels {
			labels[i] = e.Info[name]
		}
		d.Set(collector.DeviceInfo, 1, labels...)
	}
	return d
}

// same reports whether e and o are the same device of the same properties.
func (e *entry) same(o *entry) bool {
	return e.Parent == o.Parent && e.Class == o.Class && e.Vendor == o.Vendor && e.Model == o.Model && e.PCI == o.PCI &&
		slices.Equal(e.KubeIDs, o.KubeIDs) && maps.Equal(e.Info, o.Info)
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
	return f.Devices, f.Memory, nil
}

func (f *file) check() error {
	if f.Version != version {
		return fmt.Errorf("found version %d; accepted is %d", f.Version, version)
	}
	for i := range f.Devices {
		if e := &f.Devices[i]; e.ID == "" || e.Vendor == "" || e.Class == "" || e.Parent == "" && e.PCI == "" || e.Answered.IsZero() {
			return fmt.Errorf("devices[%d] is incomplete: %q", i, e.ID)
		}
	}
	return nil
}
