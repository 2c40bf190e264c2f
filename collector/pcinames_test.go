package collector_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

func TestPCINames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pci.ids")
	text := "# Names\n0001  SafeNet (wrong ID)\n\t744c  Not this one\n1002  AMD/ATI\n\t1304  Kaveri\n\t744c  Navi 31\t[Radeon RX 7900]\n\t\t1002 0e3b  A board\n\n1003  ULSI\n\t15bf  Not this one\nC 03  Display\n\t15bf  Nor this one\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	names := &collector.PCINames{Files: []string{dir + "/absent", file}}
	for device, want := range map[uint32]string{0x744c: "Navi 31 [Radeon RX 7900]", 0x15bf: "1002:15bf", 0x0e3b: "1002:0e3b"} {
		for range 2 {
			if got := names.Of(0x1002, device); got != want {
				t.Errorf("%04x is %q, want %q", device, got, want)
			}
		}
	}
	if got := (*collector.PCINames)(nil).Of(0x10de, 0x2330); got != "10de:2330" {
		t.Errorf("without a file: %q", got)
	}
}
