package pcie_test

import (
	"path/filepath"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

var trees = []string{
	"bus", "aws-f2", "intel-n3000-dfl", "intel-n6001-ofs", "intel-pac-a10-dfl", "xilinx-u250-xrt",
}

func TestGolden(t *testing.T) {
	for _, name := range trees {
		t.Run(name, func(t *testing.T) {
			s := open(t, write(t, load(t, name)), pcie.Options{})
			golden.Compare(t, filepath.Join("testdata", name+".golden"), lines(sample(t, s)))
		})
	}
}

// TestCases plays the cases of changes on the bus.
func TestCases(t *testing.T) {
	none := sysfs.New(t.TempDir())
	simtest.Cases(t, func(tb testing.TB, sys string, _ bool, _ func(collector.Event)) collector.Source {
		s := pcie.New(sysfs.New(sys), none, pcie.Options{})
		tb.Cleanup(func() { s.Close() })
		return s
	})
}
