package kernellog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

func codes(events []collector.Event) []string {
	h := newHeard()
	h.events = events
	return h.take()
}

func TestLines(t *testing.T) {
	for _, tc := range []struct {
		name, log string
		want      []string
	}{
		{"what is printed at once", `4,1,2,-;NVRM: Xid (PCI:0000:1b:00): 13, \xe2\x80\x94\x0aNVRM: Xid (PCI:0000:1b:00): 31, x` + "\n", []string{"13", "31"}},
		{"a backslash", `4,1,2,-;NVRM: Xid (PCI:0000:1b:00): 13, \x5c \x \xg0` + "\n", []string{"13"}},
		{"caller", "4,1,2,-,caller=T1;NVRM: Xid (PCI:0000:1b:00): 13, x\n", []string{"13"}},
		{"end of line of another system", "NVRM: Xid (PCI:0000:1b:00): 13\r\n", []string{"13"}},
		{"properties", record(1, 13) + " NVRM=NVRM: Xid (PCI:0000:1b:00): 14, x\n", []string{"13"}},
		{"written to the device by a process", "12,1,2,-;NVRM: Xid (PCI:0000:1b:00): 13, x\n7,2,2,-;NVRM: Xid (PCI:0000:1b:00): 31, x\n8,3,2,-;NVRM: Xid (PCI:0000:1b:00): 43, x\n", []string{"31"}},
		{"the same, as dmesg -r shows it", "<12>[    1.0] NVRM: Xid (PCI:0000:1b:00): 13, x\n<4>[    1.0] NVRM: Xid (PCI:0000:1b:00): 31, x\n", []string{"31"}},
		{
			"no records",
			"4,1,99999999999999999,-;NVRM: Xid (PCI:0000:1b:00): 13, x\n4,99999999999999999999,1,-;NVRM: Xid (PCI:0000:1b:00): 13, x\n" +
				"4;NVRM: Xid (PCI:0000:1b:00): 13, x\n4,1;NVRM: Xid (PCI:0000:1b:00): 13, x\n,1,2,-;NVRM: Xid (PCI:0000:1b:00): 13, x\n",
			nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := kernellog.NewFed(false)
			log.Feed([]byte(tc.log))
			if diff := cmp.Diff(tc.want, codes(log.Events)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A line without end must not fill the memory, and costs itself only.
func TestLongLine(t *testing.T) {
	log := kernellog.NewFed(false)
	log.Feed([]byte("4,1,2,-;NVRM: Xid (PCI:0000:1b:00): 13, "))
	for range 3 {
		log.Feed([]byte(strings.Repeat("x", 30_000)))
	}
	log.Feed([]byte("\n" + record(2, 31)))
	if diff := cmp.Diff([]string{"31"}, codes(log.Events)); diff != "" {
		t.Error(diff)
	}
}

// A reopened device repeats its records. Later ones are new.
func TestReopenedDevice(t *testing.T) {
	log := kernellog.NewFed(true)
	log.Reopen()
	log.Feed([]byte(record(1, 13) + record(2, 31)))
	log.Reopen()
	log.Feed([]byte(record(1, 13) + record(2, 31) + record(3, 43)))
	if diff := cmp.Diff([]string{"past 13", "past 31", "43"}, codes(log.Events)); diff != "" {
		t.Error(diff)
	}
}

// Sysfs determines which of the devices with PCIe errors are accelerators.
func TestSysfs(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text+"\n", 0)
	}
	log := ""
	for i, d := range []struct {
		vendor, class string
	}{
		{"0x10de", "0x030200"}, {"0x10de", "0x030000"}, {"0x10de", "0x068000"}, // GPUs, a switch
		{"0x10de", "0x040300"},                         // the sound of a GPU
		{"0x10ee", "0x058000"}, {"0x1172", "0x120000"}, // FPGAs
		{"0x1234", "0x120000"}, // another accelerator
		{"0x8086", "0x030000"}, // graphics of a processor
		{"", "0x120000"},
	} {
		addr := fmt.Sprintf("0000:%02x:00.0", i)
		if d.vendor != "" {
			put("bus/pci/devices/"+addr+"/vendor", d.vendor)
		}
		put("bus/pci/devices/"+addr+"/class", d.class)
		log += fmt.Sprintf("4,1,1,-;vfio-pci %s: PCIe Bus Error: severity=Corrected, type=Inaccessible, (Unregistered Agent ID)\n", addr)
	}
	path := filepath.Join(dir, "kmsg")
	write(t, path, log, 0)
	h := newHeard()
	start(t, kernellog.Options{Path: path, Sysfs: dir, Emit: h.emit})
	var got []string
	for _, e := range h.events {
		got = append(got, e.PCI+" "+e.Sub)
	}
	var want []string
	for _, i := range []int{0, 1, 2, 4, 5, 6} {
		want = append(want, fmt.Sprintf("0000:%02x:00.0 corrected/Inaccessible", i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Errors without a second line are dropped.
func TestPendingErrorsAreBounded(t *testing.T) {
	p := kernellog.NewParser(nil)
	expected := 0
	for _, line := range []string{
		"nvidia 0000:%02x:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
		"nvidia 0000:%02x:00.0:   device [10de:2330] error status/mask=00000001/00000000",
	} {
		for bus := range 100 {
			if _, outcome := p.Parse(fmt.Appendf(nil, line, bus)); outcome == kernellog.Reported {
				expected++
			}
		}
	}
	if expected != 8 {
		t.Errorf("%d expected", expected)
	}
}
