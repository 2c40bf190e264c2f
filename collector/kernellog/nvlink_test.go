package kernellog_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The layout of intrInfo depends on the driver.
func TestNVLinkErrors(t *testing.T) {
	nvlink := func(code uint64, sub string) expected {
		return expected{Kind: collector.EventXid, PCI: gpu, Code: code, Sub: sub}
	}
	checkMessages(t, []messages{
		{
			name:  "before 575",
			lines: []string{"NVRM: Xid (PCI:0000:1b:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 0x00000008 0x00000000 0x00000000)"},
			want:  []expected{nvlink(145, "RLW_SRC_TRACK:0x8")},
		},
		{
			name: "by the banner", driver: "",
			lines: []string{
				"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 02:13:00 UTC 2025",
				"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)",
				"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder)",
				"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)",
			},
			want: []expected{
				{Kind: collector.EventDriverLoaded},
				nvlink(145, "RLW_REMAP"),
				{Kind: collector.EventDriverLoaded},
				nvlink(145, "RLW_REMAP:0x1"),
			},
		},
		{
			name: "the last of the old", driver: "574.99",
			lines: []string{"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)"},
			want:  []expected{nvlink(145, "RLW_REMAP")},
		},
		{
			name: "the first of the new", driver: "575.51.02",
			lines: []string{"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)"},
			want:  []expected{nvlink(145, "RLW_REMAP:0x1")},
		},
		{
			name: "by the version known", driver: "580.65.06",
			lines: []string{
				"NVRM: Xid (PCI:0000:1b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x02500011 0x00000000)",
				"NVRM: Xid (PCI:0000:1b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x025001c6 0x00000000)",
				"NVRM: Xid (PCI:0000:1b:00): 150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000)",
			},
			want: []expected{nvlink(149, "NETIR_LINK_DOWN:0x25"), nvlink(149, "NETIR_LINK_DOWN"), nvlink(150, "MSE_WATCHDOG")},
		},
		{
			name: "variant, several errors, numbered errors",
			lines: []string{
				"NVRM: Xid (PCI:0000:1b:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 00 (0x00000086 0x00000001)",
				"NVRM: Xid (PCI:0000:1b:00): 145, RLW_RSPCOL Fatal XC0 i0 Link 00 (0x00000005 0x00000003)",
				"NVRM: Xid (PCI:0000:1b:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 00 (0x00000013 0x00000003)",
				"NVRM: Xid (PCI:0000:1b:00): 149, NETIR_MFDE_EVENT Fatal XC0 i0 Link 00 (0x00000014 0x00000002)",
				"NVRM: Xid (PCI:0000:1b:00): 146, TLW_RX/TLW_RX_PIPE1 Fatal XC0 i0 Link 00 (0x0000000b 0x00000004)",
				"NVRM: Xid (PCI:0000:1b:00): 146, TLW_RX Fatal XC0 i0 Link 00 (0x0000000a 0x00000040)",
				"NVRM: Xid (PCI:0000:1b:00): 146, TLW_RX Fatal XC0 i0 Link 00 (0x00000000 0x00000004)",
			},
			want: []expected{
				nvlink(145, "RLW_RXPIPE:0x1:fatal"), nvlink(145, "RLW_RSPCOL:0x2"), nvlink(149, "NETIR_BER_EVENT:0x3"), nvlink(149, "NETIR_MFDE_EVENT"),
				nvlink(146, "TLW_RX_PIPE1:0x4"), nvlink(146, "TLW_RX_PIPE0"), nvlink(146, ""),
			},
		},
		{
			name: "cut short, unknown unit, no unit",
			lines: []string{
				"NVRM: Xid (PCI:0000:1b:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406", "NVRM: Xid (PCI:0000:1b:00): 144, SAW_EGR Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)",
				"NVRM: Xid (PCI:0000:1b:00): 149, Placeholder message",
			},
			want: []expected{nvlink(149, "NETIR_INT"), nvlink(144, ""), nvlink(149, "")},
		},
	})
}
