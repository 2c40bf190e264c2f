package kernellog_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

func TestPCIeErrors(t *testing.T) {
	aer := func(code uint64, sub string) expected {
		return expected{Kind: collector.EventAER, PCI: gpu, Code: code, Sub: sub}
	}
	checkMessages(t, []messages{
		{
			name: "fatal",
			lines: []string{
				"nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)",
				"nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00040000/00400000",
				"nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00040000/00400000",
				"nvidia 0000:1b:00.0:    [18] MalfTLP                (First)",
			},
			want: []expected{aer(1<<18, "fatal/MalfTLP")},
		},
		{
			name: "nonfatal, with the tag, masked bits left out",
			lines: []string{
				"nvidia 0000:1b:00.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)",
				"nvidia 0000:1b:00.0: AER:   device [10de:2330] error status/mask=00004001/00000001",
				"nvidia 0000:1b:00.0: AER:    [14] CmpltTO",
			},
			want: []expected{aer(1<<14, "nonfatal/CmpltTO")},
		},
		{
			name: "corrected, in an old kernel's words, two bits",
			lines: []string{
				"nvidia 0000:1b:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, id=00e0(Transmitter ID)",
				"nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00001040/00002000",
				"nvidia 0000:1b:00.0:    [ 6] Bad TLP", "nvidia 0000:1b:00.0:    [12] Replay Timer Timeout  ",
			},
			want: []expected{aer(1<<12|1<<6, "corrected/BadTLP")},
		},
		{name: "not readable", lines: []string{"nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Inaccessible, (Unregistered Agent ID)"}, want: []expected{aer(0, "fatal/Inaccessible")}},
		{
			name: "by way of the firmware",
			lines: []string{
				"nvidia 0000:1b:00.0: aer_status: 0x00000001, aer_mask: 0x00000000", "nvidia 0000:1b:00.0:    [ 0] RxErr                  (First)",
				"nvidia 0000:1b:00.0: aer_layer=Physical Layer, aer_agent=Receiver ID",
				"nvidia 0000:1b:00.0: aer_status: 0x00404000, aer_mask: 0x00400000", "nvidia 0000:1b:00.0:    [14] CmpltTO                (First)",
				"nvidia 0000:1b:00.0: aer_layer=Transaction Layer, aer_agent=Requester ID", "nvidia 0000:1b:00.0: aer_uncor_severity: 0x00462030",
				"nvidia 0000:1b:00.0: aer_status: 0x00040000, aer_mask: 0x00400000", "nvidia 0000:1b:00.0:    [18] MalfTLP                (First)",
				"nvidia 0000:1b:00.0: aer_uncor_severity: 0x00462030", "nvidia 0000:1b:00.0: aer_uncor_severity: 0x00462030",
				"nvidia 0000:1b:00.0: aer_status: 0x00400000, aer_mask: 0x00400000", "nvidia 0000:1b:00.0: aer_uncor_severity: 0x00462030",
			},
			want: []expected{aer(1, "corrected/RxErr"), aer(1<<14, "nonfatal/CmpltTO"), aer(1<<18, "fatal/MalfTLP")},
		},
		{
			name: "bit that has no name",
			lines: []string{
				"nvidia 0000:1b:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
				"nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00000002/00000000",
			},
			want: []expected{aer(2, "corrected/other")},
		},
		{
			name: "two devices at once",
			lines: []string{
				"nvidia 0000:1b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
				"xocl 0000:3b:00.1: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
				"nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00000001/00002000",
				"xocl 0000:3b:00.1:   device [10ee:5005] error status/mask=00000080/00002000",
			},
			want: []expected{aer(1, "corrected/RxErr"), {Kind: collector.EventAER, PCI: "0000:3b:00.1", Code: 1 << 7, Sub: "corrected/BadDLLP"}},
		},
		{
			name: "devices that are no accelerators, and the port that passes it on",
			lines: []string{
				"mlx5_core 0000:9a:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
				"mlx5_core 0000:9a:00.0:   device [15b3:1021] error status/mask=00000001/00002000",
				"pcieport 0000:1b:00.0: AER: Corrected error received: 0000:1b:00.0",
				"pcieport 0000:1b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
				"pcieport 0000:1b:00.0:   device [8086:347a] error status/mask=00000001/00002000",
			},
		},
		{
			name: "accelerator without a driver",
			lines: []string{
				"pci 0000:1b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
				"pci 0000:1b:00.0:   device [10de:2330] error status/mask=00000001/00002000",
			},
			want: []expected{aer(1, "corrected/RxErr")},
		},
	})
}
