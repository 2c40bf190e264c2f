package kernellog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

const unnamed = "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1, emitted seq=2"

// A line without an address is about the only GPU of the driver; where there are
// several, about none.
func TestLineWithoutAddress(t *testing.T) {
	for _, tc := range []struct {
		name string
		gpus []string
		want []string
	}{
		{"one GPU", []string{"0000:c1:00.0"}, []string{"0000:c1:00.0", "0000:c1:00.0"}},
		{"a GPU of another address space", []string{"10000:c1:00.0"}, []string{"10000:c1:00.0", "0000:c1:00.0"}},
		{"two GPUs", []string{"0000:c1:00.0", "0000:c2:00.0"}, []string{"", "0000:c1:00.0"}},
		{"none", nil, []string{"", "0000:c1:00.0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sys, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			dir := filepath.Join(sys, "bus/pci/drivers/amdgpu")
			for _, name := range append(tc.gpus, "module", "bind") {
				if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(t, log, "", 0)
			h := newHeard()
			start(t, kernellog.Options{Path: log, Sysfs: sys, Emit: h.emit})
			write(t, log, "[1.5] "+unnamed+"\n[1.6] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n", os.O_APPEND)
			h.await(t, 2)
			var got []string
			for _, e := range h.all() {
				got = append(got, e.PCI)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A line with the kernel's name of a device, or with its driver's name, is about that device.
func TestNamedDevice(t *testing.T) {
	sys, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	for link, target := range map[string]string{
		"class/fpga_manager/fpga0":         "devices/platform/firmware:pcap/fpga_manager/fpga0",
		"class/fpga_manager/fpga1":         "devices/pci0000:ae/0000:b1:00.0/dfl-fme.0/dfl-fme-mgr.1/fpga_manager/fpga1",
		"bus/platform/devices/dfl-port.0":  "devices/pci0000:ae/0000:b1:00.0/fpga_region/region0/dfl-port.0",
		"bus/pci/drivers/ami/0000:21:00.0": "devices/pci0000:20/0000:21:00.0",
	} {
		for _, dir := range []string{filepath.Dir(link), target} {
			if err := os.MkdirAll(filepath.Join(sys, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join(sys, target), filepath.Join(sys, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, log, "", 0)
	h := newHeard()
	start(t, kernellog.Options{Path: log, Sysfs: sys, Emit: h.emit})
	write(t, log, "fpga_manager fpga0: Error while writing image data to FPGA\nfpga_manager fpga1: Error while writing image data to FPGA\n"+
		"fpga_manager fpga7: Error while writing image data to FPGA\ndfl-port dfl-port.0: timeout, fail to reset device\n"+
		"ami: ERROR           : Heartbeat fail count above threshold! Raising fatal event...\n", os.O_APPEND)
	h.await(t, 5)
	var got []string
	for _, e := range h.all() {
		got = append(got, e.Device+e.PCI)
	}
	if diff := cmp.Diff([]string{"firmware:pcap", "0000:b1:00.0", "", "0000:b1:00.0", "0000:21:00.0"}, got); diff != "" {
		t.Error(diff)
	}
}

// The watchdog of NVIDIA's driver names no GPU.
func TestWatchdogLine(t *testing.T) {
	sys, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	if err := os.MkdirAll(filepath.Join(sys, "bus/pci/drivers/nvidia/0000:1b:00.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, log, "", 0)
	h := newHeard()
	start(t, kernellog.Options{Path: log, Sysfs: sys, Emit: h.emit})
	write(t, log, "[1.5] NVRM: GPU0 krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7\n", os.O_APPEND)
	h.await(t, 1)
	if e := h.all()[0]; e.Kind != collector.EventHang || e.PCI != "0000:1b:00.0" {
		t.Errorf("%+v", e)
	}
}

// A program that faults without end is as many events, each of them short.
func TestPageFaultFlood(t *testing.T) {
	log := kernellog.NewFed(false)
	log.Feed([]byte(strings.Repeat("6,1,1,-;amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3 pasid:32777)\n"+
		"6,2,1,-;amdgpu 0000:c1:00.0: amdgpu:  for process "+strings.Repeat("x", 900)+" pid 1 thread x pid 1)\n", 200)))
	if len(log.Events) != 200 {
		t.Errorf("%d events", len(log.Events))
	}
	for _, e := range log.Events {
		if e.Kind != collector.EventPageFault || e.PCI != "0000:c1:00.0" || len(e.Detail) > collector.MaxDetail {
			t.Fatalf("%+v", e)
		}
	}
}
