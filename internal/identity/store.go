// Package identity keeps the identity of devices across restarts of the
// exporter, in a file: what a device that does not answer was called before. The
// file also has the faults that only an event reported.
package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// File is the name of the file.
const File = "identities.json"

const (
	version    = 1
	maxDevices = 1024
	maxFaults  = 256
	maxFile    = 1 << 20 // bytes
	// keep is how long a device that does not answer is kept.
	keep = 30 * 24 * time.Hour
	// renew is the maximum age of the time at which a device last answered.
	renew = time.Hour
)

// Store is the file in a directory. One goroutine at a time uses it, except
// Write.
type Store struct {
	root    *os.Root
	sys     sysfs.FS
	entries []entry
	memory  memory
	// fresh: the file has the memory of another boot, or none.
	fresh bool
}

// Open opens the directory. sys has the PCI bus. boot is the ID of the boot, without which
// no faults are kept.
func Open(dir string, sys sysfs.FS, boot string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Store{root: root, sys: sys, memory: memory{Boot: boot}}, nil
}

// Load returns the devices in the file whose places have no other board now. An
// invalid file is an error, and is replaced by the next Write.
func (s *Store) Load(now time.Time) ([]collector.Device, error) {
	s.memory.Since, s.fresh = now.UTC().Truncate(time.Second), s.memory.Boot != ""
	f, err := s.root.Open(File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: found more than %d bytes; accepted is a file of at most that size", f.Name(), maxFile)
	}
	all, m, err := parse(f.Name(), data)
	if err != nil {
		return nil, err
	}
	switch {
	case m == nil || !s.fresh:
	case m.Boot == s.memory.Boot:
		s.memory, s.fresh = *m, false
	case m.Since.Before(s.memory.Since):
		s.memory.Since = m.Since // the boot has ended the faults of the one before
	}
	places := map[string]bool{}
	s.entries = slices.DeleteFunc(all, func(e entry) bool {
		if e.Parent == "" {
			places[e.ID] = now.Sub(e.Answered) < keep && s.unchanged(&e)
		}
		return !places[e.ID] && !places[e.Parent]
	})
	devices := make([]collector.Device, len(s.entries))
	for i := range s.entries {
		if e := &s.entries[i]; e.Answered.After(now) {
			e.Answered = now // the clock was ahead
		}
		devices[i] = s.entries[i].device()
	}
	return devices, nil
}

// Faults returns the events of the faults that were left in this boot, the energy
// counters of their devices, and since when they are known: zero if they are not kept.
func (s *Store) Faults() (faults []collector.Event, energy map[string]float64, since time.Time) {
	if s.memory.Boot == "" {
		return nil, nil, time.Time{}
	}
	return s.memory.Faults, s.memory.Energy, s.memory.Since
}

// noteFaults takes the faults of all devices. The faults of a device that no source has
// found yet stay.
func (s *Store) noteFaults(snap *collector.Snapshot) (changed bool) {
	if s.memory.Boot == "" {
		return false
	}
	there := map[string]bool{}
	var faults []collector.Event
	energy := map[string]float64{}
	for i := range snap.Devices {
		d := &snap.Devices[i]
		there[d.ID] = true
		if d.Verdict == nil || len(d.Verdict.Faults) == 0 {
			continue
		}
		faults = append(faults, d.Verdict.Faults...)
		for _, r := range d.Readings {
			if r.Metric == collector.EnergyJoules {
				energy[d.ID] = r.Value
			}
		}
	}
	for _, e := range s.memory.Faults {
		if !there[e.Device] {
			faults = append(faults, e)
			if joules, ok := s.memory.Energy[e.Device]; ok {
				energy[e.Device] = joules
			}
		}
	}
	faults = faults[:min(len(faults), maxFaults)]
	same := slices.EqualFunc(faults, s.memory.Faults, func(a, b collector.Event) bool {
		return a.Device == b.Device && a.Kind == b.Kind && a.Code == b.Code && a.Sub == b.Sub && a.Past == b.Past && a.Time.Equal(b.Time)
	})
	if !same {
		s.memory.Faults, s.memory.Energy = faults, energy
	}
	changed, s.fresh = s.fresh || !same, false
	return changed
}

// unchanged reports whether the board may still be at its address: there is no
// function of another model there, and no function that is reserved for a virtual machine.
func (s *Store) unchanged(e *entry) bool {
	id := s.pciID(e.PCI)
	driver, _ := s.sys.Link(devicesDir + e.PCI + "/driver")
	return (id == "" || id == e.PCIID) && (driver == "" || collector.IsAcceleratorDriver(driver))
}

const devicesDir = "bus/pci/devices/"

// pciID returns the ids of a PCI function and its subsystem, "" where
// there is none.
func (s *Store) pciID(address string) string {
	ids := make([]string, 0, 4)
	for _, name := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
		text, err := s.sys.ReadText(devicesDir+address+"/"+name, 64)
		if err != nil {
			return ""
		}
		ids = append(ids, strings.TrimPrefix(text, "0x"))
	}
	return strings.Join(ids, ":")
}

// Note takes the devices that answer, and reports whether the file has to be
// written. A device that does not answer stays until its place has another one.
func (s *Store) Note(snap *collector.Snapshot) bool {
	ids, places := map[string]bool{}, map[string]bool{}
	last := map[string]time.Time{} // latest answer of devices that are down
	var next []entry
	remembered, changed := s.noteFaults(snap), false
	for i := range snap.Devices {
		d := &snap.Devices[i]
		if d.Parent == "" {
			last[d.ID] = d.Sampled
		}
		if d.Parent == "" && named(d) && answers(d) {
			ids[d.ID], places[d.PCI] = true, true
			next = append(next, s.entry(d, d.Sampled, &changed))
		}
	}
	for i := range snap.Devices {
		if d := &snap.Devices[i]; ids[d.Parent] {
			ids[d.ID] = true
			next = append(next, s.entry(d, last[d.Parent], &changed))
		}
	}
	stays := map[string]bool{}
	for _, e := range s.entries {
		switch {
		case ids[e.ID], ids[e.Parent], places[e.PCI] && e.Parent == "", e.Parent != "" && !stays[e.Parent], snap.Time.Sub(e.Answered) >= keep:
			continue
		}
		stays[e.ID] = true
		if at := inFile(last[e.ID]); at.After(e.Answered) {
			e.Answered, changed = at, true
		}
		next = append(next, e)
	}
	if len(next) > maxDevices {
		next = next[:maxDevices]
	}
	changed = changed || len(next) != len(s.entries)
	if changed {
		s.entries = next
	}
	return changed || remembered
}

// named reports whether a whole device has an identity beside its place.
func named(d *collector.Device) bool {
	return !d.Witness && !d.Passing && d.PCI != "" && d.ID != d.PCI
}

func answers(d *collector.Device) bool {
	return slices.ContainsFunc(d.Readings, func(r collector.Reading) bool { return r.Metric == collector.DeviceUp && r.Value == 1 })
}

// inFile returns a time as the file has it.
func inFile(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// entry returns the entry of d, which is the one before if nothing has changed.
func (s *Store) entry(d *collector.Device, sampled time.Time, changed *bool) entry {
	e := entry{
		ID: d.ID, Parent: d.Parent, Class: d.Class, Vendor: d.Vendor, Model: d.Model, PCI: d.PCI, Answered: inFile(sampled),
		Info: map[string]string{},
	}
	for _, id := range d.KubeIDs {
		// An index may be that of another device after a restart of the driver.
		if strings.Trim(id, "0123456789") != "" && !slices.Contains(e.KubeIDs, id) {
			e.KubeIDs = append(e.KubeIDs, id)
		}
	}
	if at := slices.IndexFunc(d.Readings, func(r collector.Reading) bool { return r.Metric == collector.DeviceInfo }); at >= 0 {
		for i, v := range d.Readings[at].Labels {
			if v != "" {
				e.Info[collector.DeviceInfo.Labels[i]] = v
			}
		}
	}
	at := slices.IndexFunc(s.entries, func(o entry) bool { return o.ID == d.ID })
	if at >= 0 && s.entries[at].same(&e) && e.Answered.Sub(s.entries[at].Answered) < renew {
		return s.entries[at]
	}
	*changed = true
	if d.Parent == "" {
		e.PCIID = s.pciID(d.PCI)
	}
	return e
}

// Encode returns the content of the file.
func (s *Store) Encode() []byte {
	f := file{Version: version, Devices: s.entries}
	if s.memory.Boot != "" {
		f.Memory = &s.memory
	}
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		panic(err) // of a year after 9999 only
	}
	return append(data, '\n')
}

// Write replaces the file: it has the old or the new content, whenever the
// machine stops.
func (s *Store) Write(data []byte) error {
	const draft = File + ".new"
	f, err := s.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.root.Rename(draft, File); err != nil {
		return err
	}
	dir, err := s.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Close closes the directory.
func (s *Store) Close() error { return s.root.Close() }
