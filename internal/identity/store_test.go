package identity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

const (
	a = "0000:1b:00.0"
	b = "0000:2c:00.0"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// node is a node with a PCI bus, and the file of its exporter.
type node struct {
	*testing.T
	sys, dir string
}

func newNode(t *testing.T) *node {
	n := &node{t, t.TempDir(), t.TempDir()}
	n.plug(a, "0x2330", "nvidia")
	n.plug(b, "0x2330", "nvidia")
	return n
}

// plug puts a function at an address; "" removes it.
func (n *node) plug(address, device, driver string) {
	n.Helper()
	dir := filepath.Join(n.sys, "bus/pci/devices", address)
	if err := os.RemoveAll(dir); err != nil {
		n.Fatal(err)
	}
	if device == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		n.Fatal(err)
	}
	for name, text := range map[string]string{"vendor": "0x10de", "device": device, "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			n.Fatal(err)
		}
	}
	if err := os.Symlink("../../drivers/"+driver, filepath.Join(dir, "driver")); err != nil {
		n.Fatal(err)
	}
}

func (n *node) open() *Store {
	n.Helper()
	s, err := Open(n.dir, sysfs.New(n.sys), "")
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { s.Close() })
	return s
}

// load is a start of the exporter.
func (n *node) load(now time.Time) (*Store, []collector.Device) {
	n.Helper()
	s := n.open()
	list, err := s.Load(now)
	if err != nil {
		n.Fatal(err)
	}
	return s, list
}

// note follows a Snapshot, and writes the file where it has to be.
func (n *node) note(s *Store, snap *collector.Snapshot) bool {
	n.Helper()
	changed := s.Note(snap)
	if changed {
		if err := s.Write(s.Encode()); err != nil {
			n.Fatal(err)
		}
	}
	return changed
}

func gpu(id, pci string, at time.Time) collector.Device {
	d := collector.Device{ID: id, Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", PCI: pci, KubeIDs: []string{id, "nvidia1", "1"}, Sampled: at}
	d.Set(collector.DeviceUp, 1, "")
	d.Set(collector.DeviceInfo, 1, "gpu", "nvidia", d.Model, "hopper", "1", pci, "0", "1650000000001", "692-2G520-0200-000", "")
	return d
}

func part(id, parent string) collector.Device {
	d := collector.Device{ID: id, Parent: parent, Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{id}}
	d.Set(collector.DeviceInfo, 1, "gpu", "nvidia", "", "", "1:3:0", "", "", "", "", "1g.10gb")
	return d
}

func down(d collector.Device) collector.Device {
	d.Readings = nil
	d.Set(collector.DeviceUp, 0, "lost")
	d.Down = collector.ReasonLost
	return d
}

func snapshot(at time.Time, devices ...collector.Device) *collector.Snapshot {
	return &collector.Snapshot{Time: at, Devices: devices}
}

func ids(list []collector.Device) string {
	var all []string
	for _, d := range list {
		all = append(all, d.ID)
	}
	return strings.Join(all, " ")
}

// TestRestart: a restarted exporter knows the devices that answered before, with
// all of their identity.
func TestRestart(t *testing.T) {
	n := newNode(t)
	s, list := n.load(noon)
	if list != nil {
		t.Errorf("without a file: %v", list)
	}
	witness := gpu("0000:3d:00.0", "0000:3d:00.0", noon)
	witness.Witness = true
	n.note(s, snapshot(noon, gpu("GPU-a", a, noon), gpu("GPU-b", b, noon), part("MIG-b", "GPU-b"), witness, down(gpu("GPU-c", "0000:3d:00.0", noon))))
	_, list = n.load(noon.Add(time.Minute))
	want := []collector.Device{gpu("GPU-a", a, noon), gpu("GPU-b", b, noon), part("MIG-b", "GPU-b")}
	want[2].Sampled = noon
	for i := range want {
		want[i].Readings = slices.DeleteFunc(want[i].Readings, func(r collector.Reading) bool { return r.Metric != collector.DeviceInfo })
		want[i].KubeIDs = slices.DeleteFunc(want[i].KubeIDs, func(id string) bool { return id == "1" })
	}
	same := cmp.Comparer(func(a, b collector.Reading) bool { return a.Metric == b.Metric && slices.Equal(a.Labels, b.Labels) })
	if diff := cmp.Diff(want, list, same); diff != "" {
		t.Error(diff)
	}
}

// TestWrites: the file is written when an identity changes, and when a device
// has ceased to answer; else once an hour.
func TestWrites(t *testing.T) {
	n := newNode(t)
	s := n.open()
	at := func(m int) time.Time { return noon.Add(time.Duration(m) * time.Minute) }
	other := gpu("GPU-a", a, at(3))
	other.KubeIDs = append(other.KubeIDs, "gpu-1")
	lost := down(gpu("GPU-a", a, at(70)))
	for i, c := range []struct {
		minute int
		device []collector.Device
		want   bool
	}{
		{0, []collector.Device{gpu("GPU-a", a, at(0))}, true},
		{1, []collector.Device{gpu("GPU-a", a, at(1))}, false},
		{2, nil, false},
		{3, []collector.Device{other}, true},
		{4, []collector.Device{gpu("GPU-a", a, at(4))}, true},
		{64, []collector.Device{gpu("GPU-a", a, at(64))}, true},
		{70, []collector.Device{gpu("GPU-a", a, at(70))}, false},
		{71, []collector.Device{lost}, true},
		{72, []collector.Device{lost}, false},
		{100, []collector.Device{lost}, false},
	} {
		if got := n.note(s, snapshot(at(c.minute), c.device...)); got != c.want {
			t.Errorf("step %d: written: %v", i, got)
		}
	}
	if _, list := n.load(at(101)); len(list) != 1 || !list[0].Sampled.Equal(at(70)) {
		t.Errorf("%+v", list)
	}
}

// TestForgotten: an identity is not that of another board at its place.
func TestForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*node)
		after  time.Duration
		now    []collector.Device // that answer
		want   string
	}{
		"the same boards":              {want: "GPU-a GPU-b MIG-b"},
		"off the bus":                  {before: func(n *node) { n.plug(b, "", "") }, want: "GPU-a GPU-b MIG-b"},
		"without a driver":             {before: func(n *node) { os.Remove(filepath.Join(n.sys, "bus/pci/devices", b, "driver")) }, want: "GPU-a GPU-b MIG-b"},
		"another model":                {before: func(n *node) { n.plug(b, "0x2901", "nvidia") }, want: "GPU-a"},
		"given to a virtual machine":   {before: func(n *node) { n.plug(b, "0x2330", "vfio-pci") }, want: "GPU-a"},
		"after 30 days":                {after: 30 * 24 * time.Hour},
		"the clock was ahead":          {after: -time.Hour, want: "GPU-a GPU-b MIG-b"},
		"another board answers":        {now: []collector.Device{gpu("GPU-c", b, noon)}, want: "GPU-c GPU-a"},
		"moved to another slot":        {now: []collector.Device{gpu("GPU-b", "0000:3d:00.0", noon)}, want: "GPU-b GPU-a"},
		"answers, partitions are gone": {now: []collector.Device{gpu("GPU-b", b, noon)}, want: "GPU-b GPU-a"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			s := n.open()
			n.note(s, snapshot(noon, gpu("GPU-a", a, noon), gpu("GPU-b", b, noon), part("MIG-b", "GPU-b")))
			if c.before != nil {
				c.before(n)
			}
			now := noon.Add(c.after)
			s, list := n.load(now)
			if c.now != nil {
				n.note(s, snapshot(now, c.now...))
				_, list = n.load(now)
			}
			if got := ids(list); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			for _, d := range list {
				if d.Sampled.After(now) {
					t.Errorf("%s answers at %v", d.ID, d.Sampled)
				}
			}
		})
	}
}

// TestKept: a device that does not answer for 30 days is forgotten by an
// exporter that runs, too.
func TestKept(t *testing.T) {
	n := newNode(t)
	s := n.open()
	n.note(s, snapshot(noon, gpu("GPU-a", a, noon)))
	for days, want := range map[time.Duration]bool{29: false, 30: true} {
		if got := s.Note(snapshot(noon.Add(days * 24 * time.Hour))); got != want && days == 29 || days == 30 && len(s.entries) > 0 {
			t.Errorf("after %d days: %d devices", days, len(s.entries))
		}
	}
}

const valid = `{"version": 1, "devices": [
 {"id": "GPU-a", "class": "gpu", "vendor": "nvidia", "model": "H100", "pci_address": "0000:1b:00.0", "pci_id": "10de:2330:10de:16c1",
  "kube_ids": ["GPU-a"], "info": {"index": "1"}, "answered": "2026-11-23T12:00:00Z"},
 {"id": "MIG-a", "parent": "GPU-a", "class": "gpu", "vendor": "nvidia", "model": "", "answered": "2026-11-23T12:00:00Z"}]}
`

// TestRefused: an invalid file is refused as a whole, and is replaced by the next
// write.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"empty":           {valid, "", "EOF"},
		"another version": {`"version": 1`, `"version": 2`, "found version 2; accepted is 1"},
		"unknown field":   {`"model": "H100"`, `"modell": "H100"`, `unknown field "modell"`},
		"no time":         {`, "answered": "2026-11-23T12:00:00Z"},`, `},`, "devices[0] is incomplete"},
		"too large":       {valid, strings.Repeat(" ", 1<<20) + valid, "accepted is a file of at most that size"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			if err := os.WriteFile(filepath.Join(n.dir, File), []byte(strings.Replace(valid, c.old, c.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			s := n.open()
			if list, err := s.Load(noon); err == nil || list != nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), File) {
				t.Errorf("%v, want %s", err, c.want)
			}
			n.note(s, snapshot(noon, gpu("GPU-b", b, noon)))
			if _, list := n.load(noon); ids(list) != "GPU-b" {
				t.Errorf("%v", list)
			}
		})
	}
	if _, _, err := parse(File, []byte(valid)); err != nil {
		t.Error(err)
	}
}

// TestFaults: faults are left in one boot, also of a device that no source has found yet,
// until its verdict has none. Another boot ends them, and reaches back as far.
func TestFaults(t *testing.T) {
	n := newNode(t)
	clock := noon
	open := func(boot string) (*Store, string) {
		s, err := Open(n.dir, sysfs.New(n.sys), boot)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if _, err := s.Load(clock); err != nil {
			t.Fatal(err)
		}
		faults, energy, since := s.Faults()
		text := since.Format(time.TimeOnly)
		for _, e := range faults {
			text += fmt.Sprintf(" %s xid %d at %s, %g J", e.Device, e.Code, e.Time.Format(time.TimeOnly), energy[e.Device])
		}
		return s, text
	}
	failed := gpu("GPU-a", a, noon)
	failed.Set(collector.EnergyJoules, 500)
	failed.Verdict = &collector.Verdict{State: "failed", Faults: []collector.Event{{Time: noon, Device: "GPU-a", Kind: collector.EventXid, Code: 95}}}
	s, _ := open("one")
	if !n.note(s, snapshot(noon, failed)) || n.note(s, snapshot(noon, failed)) {
		t.Error("written when nothing has changed, or not at all")
	}
	const want = "12:00:00 GPU-a xid 95 at 12:00:00, 500 J"
	s, got := open("one")
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	n.note(s, snapshot(noon, gpu("GPU-b", b, noon)))
	if _, got = open("one"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	clock = noon.Add(time.Hour)
	for boot, want := range map[string]string{"two": "12:00:00", "": "00:00:00"} {
		if _, got = open(boot); got != want {
			t.Errorf("boot %q: %s, want %s", boot, got, want)
		}
	}
	s, _ = open("one")
	n.note(s, snapshot(noon, gpu("GPU-a", a, noon)))
	if _, got = open("one"); got != "12:00:00" {
		t.Error(got)
	}
}

// TestWriteFails: a write that fails leaves the file as it was.
func TestWriteFails(t *testing.T) {
	n := newNode(t)
	s := n.open()
	n.note(s, snapshot(noon, gpu("GPU-a", a, noon)))
	if err := os.Mkdir(filepath.Join(n.dir, File+".new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Write([]byte("{}")); err == nil {
		t.Error("no error")
	}
	if _, list := n.load(noon); ids(list) != "GPU-a" {
		t.Errorf("%v", list)
	}
}
