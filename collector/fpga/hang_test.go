package fpga_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestHangBeforeFirstAnswer: a card whose first read does not return, as after
// a restart of the exporter, has its address, the names that the kubelet uses
// and its holder; its other functions are no devices.
func TestHangBeforeFirstAnswer(t *testing.T) {
	for _, c := range []struct{ tree, block, id, resource, kubelet, vendor string }{
		{"xilinx-u250-xrt", u250 + "/rom.u.0", "0000:5e:00.1", "amd.com/xilinx_u250", "0000:5e:00.1", "amd"},
		{"xilinx-u250-xrt", u250 + "/rom.u.0", "0000:5e:00.1", "squat.ai/alveo", "renderD129", "amd"},
		{"intel-n3000-dfl", n3000 + "/dfl-fme.0", "0000:1b:00.0", "fpga.intel.com/region-a5d72a3cc8b04939912cf715e5dc10ca", "dfl-fme.0", "intel"},
		{"intel-n3000-dfl", n3000 + "/dfl-fme.0", "0000:1b:00.0", "fpga.intel.com/af-ce4.d84.x", "intel-fpga-port.0", "intel"},
		{"zynqmp-fpga-manager", "/sys/class/fpga_manager/fpga0/state", filepath.Base(pcap), "example.com/fpga", "fpga0", ""},
	} {
		t.Run(c.tree+" "+c.kubelet, func(t *testing.T) {
			tree := load(t, c.tree)
			release := tree.Block(c.block)
			fs := mounted(t, tree)
			listed := time.Now()
			pods := &podmap.Map{Time: listed, Confirmed: listed, State: podmap.StateFresh, Pods: 1, Allocations: []podmap.Allocation{{
				Pod: podmap.Pod{Namespace: "ml", Name: "a"}, Containers: []string{"main"},
				Resource: c.resource, DeviceID: c.kubelet, Ref: podmap.ParseID(c.kubelet), Since: listed,
			}}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sampler := collector.NewSampler(collector.Settings{
				Interval: 10 * time.Millisecond, ForgetAfter: time.Hour, Timeout: map[string]time.Duration{fpga.Name: 100 * time.Millisecond},
			})
			sampler.Add(fpga.New(fs, quiet), collector.Cover{Class: collector.FPGA})
			sampler.Add(pcie.New(fs, sysfs.New(t.TempDir()), pcie.Options{}))
			sampler.AddJudge(allocation.New(allocation.Options{
				Map: func() *podmap.Map { return pods }, Status: func() podmap.Status { return podmap.Status{} },
			}, allocation.DefaultSettings()))
			done := make(chan error)
			go func() { done <- sampler.Run(ctx) }()
			for stuck, deadline := 0, time.Now().Add(5*time.Minute); stuck < 10; {
				next := sampler.Next()
				snap := sampler.Latest()
				if time.Now().After(deadline) {
					t.Fatal("not stuck within five minutes")
				}
				if stuck > 0 || snap != nil && slices.ContainsFunc(snap.Devices, func(d collector.Device) bool { return d.Down == collector.ReasonStuck && d.Vendor == c.vendor }) {
					stuck++
					// The same in each Snapshot: one line in the log.
					d := one(t, collector.Round{Devices: snap.Devices})
					if d.ID != c.id || d.Down != collector.ReasonStuck || d.Vendor != c.vendor || (d.PCI == "") != (c.vendor == "") || !slices.Contains(d.KubeIDs, c.kubelet) {
						t.Fatalf("%s, vendor %q, address %q, ids %q, down %q", d.ID, d.Vendor, d.PCI, d.KubeIDs, d.Down)
					}
					want(t, d, 1, collector.DeviceHolders)
				}
				<-next
			}
			cancel()
			release()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
