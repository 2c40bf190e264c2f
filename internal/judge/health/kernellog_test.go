package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// TestNVLinkSubCodes: every sub-code of NVLink 5 that the kernel log reports has an
// entry in the catalogue, and the reverse.
func TestNVLinkSubCodes(t *testing.T) {
	c := health.Builtin()
	known := 0
	for _, e := range c.Entries() {
		if e.Sub != "" && e.Sub != "no_sub_code" && e.Event == "" {
			known++
		}
	}
	reported := 0
	for code := uint64(144); code <= 150; code++ {
		for _, s := range kernellog.NVLinkSubs(code) {
			e := xid(code, sub(s))
			entry, _ := c.Lookup(&e)
			switch {
			case entry.Sub != "":
				reported++
			case strings.Contains(s, ":"):
				t.Errorf("Xid %d, %s has no entry", code, s)
			}
		}
	}
	if reported != known {
		t.Errorf("the kernel log reports %d entries, the catalogue has %d", reported, known)
	}
}

// TestNoSubCode: an Xid of NVLink 5 that only the driver has reported is judged as the
// gravest of its sub-codes, and its text explains why.
func TestNoSubCode(t *testing.T) {
	c := health.Builtin()
	for code := uint64(144); code <= 150; code++ {
		e := xid(code, func(e *collector.Event) { e.Source = kernellog.Name })
		gravest, _ := c.Lookup(&e) // without a sub-code that the program knows
		for _, s := range kernellog.NVLinkSubs(code) {
			e.Sub = s
			if entry, _ := c.Lookup(&e); entry.Severity > gravest.Severity {
				gravest = entry
			}
		}
		e = xid(code)
		got, _ := c.Lookup(&e)
		if got.Severity != gravest.Severity || got.Action != gravest.Action || got.Ends != gravest.Ends || got.Rules != gravest.Rules {
			t.Errorf("Xid %d: %s %s, want that of %s", code, got.Severity, got.Action, gravest.Sub)
		}
		if strings.Contains(got.Text, "only the kernel log has the sub-code") != (gravest.Sub != "") {
			t.Errorf("Xid %d: %s", code, got.Text)
		}
	}
}

// TestKernelLines judges events parsed from lines of the kernel log.
func TestKernelLines(t *testing.T) {
	for _, c := range []struct{ driver, lines, want string }{
		{"", "NVRM: Xid (PCI:0000:1b:00): 31, pid=123, name=python", "healthy none"},
		{"", "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\nNVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.", "failed reboot xid_79"},
		{"", "NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 94, pid=1, Contained: SM", "degraded restart_app xid_94"},
		{"580.10", "NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x00000000 0x00000000 0x00000000 0x00000000)", "failed reset xid_145_rlw_remap_0x40"},
		{"580.10", "NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000100 0x00000000 0x00000000 0x00000000 0x00000000)", "healthy none"},
		{"", "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "failed reboot recovery_action_reboot"},
		{"", "NVRM: Xid (PCI:0000:1b:00): 119, Timeout\nNVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.10  Release Build", "healthy none"},
		{"", "amdgpu 0000:1b:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2\namdgpu 0000:1b:00.0: amdgpu: GPU reset begin!\namdgpu 0000:1b:00.0: amdgpu: GPU reset(1) failed", "failed reboot event_reset_failed event_hang"},
		{"", "amdgpu 0000:1b:00.0: amdgpu: GPU reset(1) failed\n[drm] Initialized amdgpu 3.57.0 20150101 for 0000:1b:00.0 on minor 1", "healthy none"},
		{"", "amdgpu 0000:1b:00.0: {7}socket: 0, die: 1, 3 new uncorrectable hardware errors detected in gfx block\namdgpu 0000:1b:00.0: amdgpu: GPU reset(1) succeeded!", "healthy none"},
		{"", "nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)\nnvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00004000/00400000", "degraded reset event_aer_fatal"},
	} {
		p := kernellog.NewParser(c.driver, nil)
		s := snapshot(start, nil, gpu(start))
		for line := range strings.SplitSeq(c.lines, "\n") {
			e, outcome := p.Parse([]byte(line))
			if outcome == kernellog.Unrelated {
				t.Errorf("not an event: %s", line)
			}
			if outcome != kernellog.Reported {
				continue
			}
			if e.Time = start.Add(time.Duration(len(s.News)) * time.Millisecond); e.PCI == gpuAt {
				e.Device = gpuID // as the Sampler sets it
			}
			s.News = append(s.News, e)
		}
		health.New(health.Builtin(), health.Options{}).Judge(s)
		if got := verdict(&s.Devices[0]); got != c.want {
			t.Errorf("got %s, want %s after\n%s", got, c.want, c.lines)
		}
	}
}
