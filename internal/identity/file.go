package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
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
func parse(name string, data []byte) ([]entry, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	entries := make([]entry, len(f.Devices))
	for i := range f.Devices {
		entries[i] = f.Devices[i].entry()
	}
	return entries, nil
}

func (f *file) check() error {
	if f.Version != version {
		return fmt.Errorf("found version %d; accepted is %d", f.Version, version)
	}
	if len(f.Devices) > maxDevices {
		return fmt.Errorf("found %d devices; accepted are at most %d", len(f.Devices), maxDevices)
	}
	ids, places := map[string]bool{}, map[string]bool{}
	for i := range f.Devices {
		r := &f.Devices[i]
		whole := func(o record) bool { return o.ID == r.Parent && o.Parent == "" }
		switch {
		case !r.valid():
			return fmt.Errorf("devices[%d] is invalid: %q", i, r.ID)
		case ids[r.ID], r.Parent == "" && places[r.PCI]:
			return fmt.Errorf("devices[%d] is there a second time: %s", i, r.ID)
		case r.Parent != "" && !slices.ContainsFunc(f.Devices[:i], whole):
			return fmt.Errorf("devices[%d] has a parent that is no whole device above: %s", i, r.Parent)
		}
		ids[r.ID], places[r.PCI] = true, true
	}
	return nil
}

var (
	idForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,127}$`)
	pciForm   = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	pciIDForm = regexp.MustCompile(`^([0-9a-f]{4}(:[0-9a-f]{4}){3})?$`)
	classForm = regexp.MustCompile(`^(gpu|fpga|switch|cpu)$`)
)

const (
	maxText    = 128 // bytes of a label
	maxKubeIDs = 32
)

// valid reports whether the texts can be labels, and the device can be identified.
func (r *record) valid() bool {
	ok := idForm.MatchString(r.ID) && idForm.MatchString(r.Vendor) && classForm.MatchString(r.Class) && pciIDForm.MatchString(r.PCIID) &&
		len(r.KubeIDs) <= maxKubeIDs && r.Answered.Year() >= 2000 && r.Answered.Year() <= 9000 && printable(r.Model)
	ok = ok && (r.Parent == "" || idForm.MatchString(r.Parent)) && (r.Parent != "" && r.PCI == "" || pciForm.MatchString(r.PCI))
	for _, id := range r.KubeIDs {
		ok = ok && idForm.MatchString(id)
	}
	for name, text := range r.Info {
		ok = ok && slices.Contains(collector.DeviceInfo.Labels, name) && printable(text)
	}
	return ok
}

func printable(text string) bool {
	return len(text) <= maxText && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
}
