package kernellog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

// expected is an expected event, without its Detail.
type expected struct {
	Kind        collector.EventKind
	PCI         string
	Code, Cause uint64
	Sub, Action string
	Place       string
}

func strip(e collector.Event) expected {
	return expected{e.Kind, e.PCI, e.Code, e.Cause, e.Sub, e.Action, e.Place}
}

// gpu is the address of the GPU of most messages.
const gpu = "0000:1b:00.0"

// messages are messages in order, with their outcomes.
type messages struct {
	name   string
	driver string // version
	lines  []string
	want   []expected
	refuse int // lines of no known form
}

func checkMessages(t *testing.T, table []messages) {
	for _, tc := range table {
		t.Run(tc.name, func(t *testing.T) {
			p := kernellog.NewParser(tc.driver, func(addr string) bool { return addr == gpu })
			var got []expected
			refused := 0
			for _, line := range tc.lines {
				e, outcome := p.Parse([]byte(line))
				switch outcome {
				case kernellog.Reported:
					got = append(got, strip(e))
				case kernellog.MalformedXid, kernellog.MalformedSXid:
					refused++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if refused != tc.refuse {
				t.Errorf("%d lines refused, want %d", refused, tc.refuse)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	xid := func(code uint64) expected { return expected{Kind: collector.EventXid, PCI: gpu, Code: code} }
	at := func(code uint64, place string) expected {
		return expected{Kind: collector.EventXid, PCI: gpu, Code: code, Place: place}
	}
	sxid := func(code uint64, sub string) expected {
		return expected{Kind: collector.EventSXid, PCI: "0000:c1:00.0", Code: code, Sub: sub}
	}
	lost := expected{Kind: collector.EventBusLoss, PCI: gpu}
	checkMessages(t, []messages{
		// Xids, in the forms that drivers have printed.
		{name: "plain", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."}, want: []expected{xid(79)}},
		{name: "process", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 31, pid=1234, name=python3, Ch 00000008"}, want: []expected{xid(31)}},
		{name: "process unknown", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception"}, want: []expected{xid(13)}},
		{name: "GPU instance", lines: []string{"NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 94, pid=7, name=a, Contained"}, want: []expected{at(94, "5")}},
		{name: "compute instance", lines: []string{"NVRM: Xid (PCI:0000:1b:00 GPU-I:05 GPU-CI:00): 94, Contained"}, want: []expected{at(94, "5/0")}},
		{name: "instances of two digits", lines: []string{"NVRM: Xid (PCI:0000:1b:00 GPU-I:13 GPU-CI:01): 43, x"}, want: []expected{at(43, "13/1")}},
		{name: "instance in the text", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 94, name=x GPU-I:05 GPU-CI:00): "}, want: []expected{xid(94)}},
		{name: "function", lines: []string{"NVRM: Xid (PCI:0000:1b:00.0): 48, DBE"}, want: []expected{xid(48)}},
		{name: "old driver", lines: []string{"NVRM: Xid (0000:1b:00): 8, Channel 00000001"}, want: []expected{xid(8)}},
		{name: "upper case, long domain", lines: []string{"NVRM: Xid (PCI:00000000:1B:00.0): 63, Row"}, want: []expected{xid(63)}},
		{name: "number only", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 69"}, want: []expected{xid(69)}},
		{name: "code of no table", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 999, unknown"}, want: []expected{xid(999)}},
		{
			name: "domain of a virtual machine", lines: []string{"NVRM: Xid (PCI:10000:1b:00): 79, x"},
			want: []expected{{Kind: collector.EventXid, PCI: "10000:1b:00.0", Code: 79}},
		},
		{
			name:  "cause",
			lines: []string{"NVRM: Xid (PCI:0000:1b:00): 45, pid=9, name=x, Ch 00000008 caused by previous Xid 149"},
			want:  []expected{{Kind: collector.EventXid, PCI: gpu, Code: 45, Cause: 149}},
		},
		{name: "cause without a number", lines: []string{"NVRM: Xid (PCI:0000:1b:00): 45, Ch caused by previous Xid N", "NVRM: Xid (PCI:0000:1b:00): 45, Ch caused by previous Xid 31 of many"}, want: []expected{xid(45), xid(45)}},
		{
			name: "recovery action by its number, whatever its words",
			lines: []string{
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)",
				"NVRM: Xid (PCI:0000:1b:00): 154, pid=1, name=a, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x2 (OS Reboot)",
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x2 (x) to 0x3 (Drain P2P)",
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x0 (None)",
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x6 (New)",
				"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed",
				"NVRM: Xid (PCI:0000:1b:00): 154, pid=1, name=a changed from 0x0 to 0x5, GPU recovery action changed from 0x0 (None) to 0x1 (x)",
			},
			want: []expected{
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "reset"},
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "reset"},
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "reboot"},
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "drain_p2p"},
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "drain_and_reset"},
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "none"},
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "other"},
				xid(154),
				{Kind: collector.EventXid, PCI: gpu, Code: 154, Action: "reset"},
			},
		},
		{
			name: "no known form",
			lines: []string{
				"NVRM: Xid", "NVRM: Xid (invalid): some error", "NVRM: Xid (PCI:0000:1b:00): abc", "NVRM: Xid (PCI:0000:1b:00): 0, x",
				"NVRM: Xid (PCI:0000:1b:00): 100000, x", "NVRM: Xid (PCI:0000:1b:20): 79, x", "NVRM: Xid (PCI:0000:1b:00): 79x",
				"NVRM: Xid (PCI:0000:1b:000): 79, x", "NVRM: Xid: 79, x", "NVRM: Xid (PCI:0000:1b:00 79",
				"NVRM: Xid (PCI:0000:1b:00,x): 79, x", "NVRM: Xid (PCI:00:1b:00): 79, x", "NVRM: Xid (PCI:0000:1b:00): 18446744073709551695, x",
				"nvidia-nvswitch0: SXid (invalid): some error", "nvidia-nvswitch0: SXid: 1",
			},
			refuse: 15,
		},
		{
			name: "not the kernel's",
			lines: []string{
				"x NVRM: Xid (PCI:0000:1b:00): 79, x", "NVRM: GPU at PCI:0000:1b:00: GPU-00000000-1111-2222-3333-444444444444",
				"nvidia-nvswitch0: using MSI", "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:1b:00", "",
			},
		},

		// SXids: one fault is up to four lines.
		{
			name: "switch",
			lines: []string{
				"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
				"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Severity 0 Engine instance 08 Sub-engine instance 00",
				"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Data {0x50610002, 0x10100030}",
				"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
				"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 10003, Host_unhandled_interrupt",
			},
			want: []expected{sxid(12028, "nonfatal"), sxid(20034, "fatal"), sxid(10003, "")},
		},

		// GPUs that fell off the bus.
		{name: "lost", lines: []string{"NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus."}, want: []expected{lost}},
		{name: "lost, by the bus", lines: []string{"NVRM: GPU at PCI:0000:1b:00 has fallen off the bus"}, want: []expected{lost}},
		{
			name: "lost when probed",
			lines: []string{
				"NVRM: The NVIDIA GPU 0000:1b:00.0", "NVRM: (PCI ID: 10de:2330) installed in this system has",
				"NVRM: fallen off the bus and is not responding to commands.",
				"NVRM: fallen off the bus and is not responding to commands.",
			},
			want: []expected{lost},
		},
		{
			name: "lost when probed, on two lines",
			lines: []string{
				"NVRM: The NVIDIA GPU 0000:1b:00.0 (PCI ID: 10de:2d04) installed in this system has",
				"usb 1-1: new high-speed USB device", "NVRM: fallen off the bus and is not responding to commands.",
			},
			want: []expected{lost},
		},
		{name: "lost, without the cause", lines: []string{"NVRM: fallen off the bus and is not responding to commands."}},
		{
			name:  "another fate",
			lines: []string{"NVRM: The NVIDIA GPU 0000:1b:00.0", "NVRM: a", "NVRM: b", "NVRM: fallen off the bus and is not responding to commands."},
		},
		{name: "lost, at no address", lines: []string{"NVRM: GPU 0000:1b:00a: GPU has fallen off the bus.", "NVRM: something has fallen off the bus"}},
	})
}
