package identity

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// file is the content of the file: JSON, which is YAML too.
type file struct {
	Version int      `json:"version" yaml:"version" accept:"1..1"`
	Devices []record `json:"devices" yaml:"devices"`
}

// record is one device: a whole one, with its place, or a partition of one.
type record struct {
	ID     string `json:"id" yaml:"id"`
	Parent string `json:"parent,omitempty" yaml:"parent"`
	Class  string `json:"class" yaml:"class" accept:"gpu|fpga|switch|cpu"`
	Vendor string `json:"vendor" yaml:"vendor"`
	Model  string `json:"model" yaml:"model"`
	PCI    string `json:"pci_address,omitempty" yaml:"pci_address"`
	// PCIID has vendor, device, and those of the subsystem.
	PCIID   string   `json:"pci_id,omitempty" yaml:"pci_id"`
	KubeIDs []string `json:"kube_ids,omitempty" yaml:"kube_ids"`
	// Info has the labels of accel_device_info that are not empty.
	Info map[string]string `json:"info,omitempty" yaml:"info"`
	// Answered is when it last answered, to about an hour.
	Answered time.Time `json:"answered" yaml:"answered"`
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

// parse reads the content of the file. The error has every mistake.
func parse(name string, data []byte) ([]entry, error) {
	f := file{}
	if err := strict.Decode(name, data, &f); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err) // an empty file
	}
	entries := make([]entry, len(f.Devices))
	for i := range f.Devices {
		entries[i] = f.Devices[i].entry()
	}
	return entries, nil
}

// Check implements strict.Checker.
func (f *file) Check() error {
	if f.Version != version {
		return fmt.Errorf("found version %d; accepted is %d", f.Version, version)
	}
	if len(f.Devices) > maxDevices {
		return fmt.Errorf("found %d devices; accepted are at most %d", len(f.Devices), maxDevices)
	}
	ids, places := map[string]bool{}, map[string]bool{}
	for i, r := range f.Devices {
		switch {
		case ids[r.ID]:
			return strict.At(fmt.Errorf("found %s a second time; accepted is once", wording.Quote(r.ID)), "devices", i, "id")
		case r.Parent == "" && places[r.PCI]:
			return strict.At(fmt.Errorf("found %s a second time; accepted is once", wording.Quote(r.PCI)), "devices", i, "pci_address")
		case r.Parent != "" && !slices.ContainsFunc(f.Devices[:i], func(o record) bool { return o.ID == r.Parent && o.Parent == "" }):
			return strict.At(fmt.Errorf("found %s; accepted is the id of a whole device above", wording.Quote(r.Parent)), "devices", i, "parent")
		}
		ids[r.ID], places[r.PCI] = true, true
	}
	return nil
}

var (
	idForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,127}$`)
	pciForm   = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	pciIDForm = regexp.MustCompile(`^[0-9a-f]{4}(:[0-9a-f]{4}){3}$`)
)

const (
	maxText    = 128 // bytes of a label
	maxKubeIDs = 32
)

// Check implements strict.Checker.
func (r *record) Check() error {
	for _, t := range []struct {
		field, text string
		form        *regexp.Regexp
		optional    bool
	}{
		{"id", r.ID, idForm, false},
		{"vendor", r.Vendor, idForm, false},
		{"parent", r.Parent, idForm, true},
		{"pci_address", r.PCI, pciForm, r.Parent != ""},
		{"pci_id", r.PCIID, pciIDForm, true},
	} {
		if (t.text != "" || !t.optional) && !t.form.MatchString(t.text) {
			return strict.At(fmt.Errorf("found %s; accepted is %s", wording.Quote(t.text), t.form), t.field)
		}
	}
	if r.Class == "" {
		return strict.At(fmt.Errorf("found no class; accepted is one"), "class")
	}
	if len(r.KubeIDs) > maxKubeIDs {
		return strict.At(fmt.Errorf("found %d; accepted are at most %d", len(r.KubeIDs), maxKubeIDs), "kube_ids")
	}
	for i, id := range r.KubeIDs {
		if !idForm.MatchString(id) {
			return strict.At(fmt.Errorf("found %s; accepted is %s", wording.Quote(id), idForm), "kube_ids", i)
		}
	}
	for name := range r.Info {
		if !slices.Contains(collector.DeviceInfo.Labels, name) {
			return strict.At(fmt.Errorf("found the label %s; accepted are those of %s", wording.Quote(name), collector.DeviceInfo.Name), "info")
		}
	}
	for _, text := range slices.Concat([]string{r.Model}, slices.Collect(maps.Values(r.Info))) {
		if len(text) > maxText || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return fmt.Errorf("found %s; accepted are at most %d printable bytes", wording.Quote(text), maxText)
		}
	}
	if y := r.Answered.Year(); y < 2000 || y > 9000 {
		return strict.At(fmt.Errorf("found a time in the year %d; accepted is 2000 to 9000", y), "answered")
	}
	return nil
}
