package allocation_test

import (
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// FuzzList: for any names and ids in the kubelet's list, series are valid and their
// number is bounded. Each pod has one series per device. Every allocation is reported,
// or counted as unresolved or omitted.
func FuzzList(f *testing.F) {
	f.Add("ml\x00a\x00main\x00nvidia.com/gpu\x00" + gpuA + "\nml\x00b\x00main\x00nvidia.com/gpu\x00nvidia0")
	f.Add("ml\x00a\x00main\x00nvidia.com/gpu\x00" + gpuA + "::0\nml\x00a\x00side\x00nvidia.com/gpu.shared\x00" + gpuA + "::1\nml\x00b\x00x\x00r\x00" + gpuA + "-3")
	f.Add("ml\x00a\x00main\x00amd.com/xilinx_u250\x000000:86:00.1-2\n\x00\x00\x00rdma/*\x00\xff\n\n")
	f.Add(strings.Repeat("ns\x00"+strings.Repeat("p", 600)+"\x00c\x00fpga.intel.com/af\x00dfl-port.0\n", 3))
	f.Fuzz(func(t *testing.T, text string) {
		r := newRig(t, func(r *rig) {
			r.settings.MaxHolders = 3
			r.settings.Currency, r.settings.Prices = "EUR", []allocation.Price{{PerHour: 1}}
		})
		var list []podmap.Allocation
		pairs := map[string]bool{}
		for line := range strings.SplitSeq(strings.ToValidUTF8(text, "?"), "\n") {
			parts := strings.Split(line, "\x00")
			if len(parts) != 5 || len(list) >= 50 || len(line) > 2500 {
				continue
			}
			for i, p := range parts { // podmap skips longer names
				parts[i] = p[:min(len(p), 512)]
			}
			h := alloc(parts[1], parts[3], strings.ToValidUTF8(parts[4], ""), containers(parts[2]))
			h.Pod.Namespace = parts[0]
			list = append(list, h)
		}
		devices := []collector.Device{device(gpuA, 0, used(0, gib)), fpga("card"), device(gpuB, 1), slice(mig1, gpuB, 1, 1, "3g.40gb", unit("graphics", 0))}
		for range 3 {
			r.list(list...)
			r.after(time.Minute, devices...)
		}
		reported := 0
		for _, d := range r.snap.Devices {
			for _, x := range d.Readings {
				for _, l := range x.Labels {
					if !utf8.ValidString(l) || len(l) > 512 {
						t.Errorf("%s: label %q", x.Metric.Name, l)
					}
				}
				if x.Metric == collector.AllocationInfo {
					reported++
					pair := d.ID + "\x00" + x.Labels[0] + "\x00" + x.Labels[1]
					if pairs[pair] {
						t.Errorf("duplicate series: %q", pair)
					}
					pairs[pair] = true
				}
			}
		}
		if reported > 3 {
			t.Errorf("%d allocations", reported)
		}
		report := r.j.Report()
		omitted := 0
		for _, d := range report.Devices {
			omitted += d.OmittedHolders
		}
		if ends := reported + omitted + len(report.Unresolved); ends == 0 && len(list) > 0 || ends > len(list) {
			t.Errorf("of %d allocations %d are reported, %d omitted, %d unresolved", len(list), reported, omitted, len(report.Unresolved))
		}
	})
}

// TestConcurrent: every method except Judge may be called concurrently.
func TestConcurrent(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", gpu, gpuA))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, f := range []func(){
		func() { r.j.Report() },
		func() { r.j.Resources(gpuA) },
		func() { r.j.Apply(allocation.DefaultSettings()) },
	} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	for range 200 {
		r.after(time.Second, device(gpuA, 0, used(0, gib)))
	}
	close(stop)
	wg.Wait()
	r.want(collector.AllocationInfo, "A a 1")
}
