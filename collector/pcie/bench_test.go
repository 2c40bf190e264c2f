package pcie_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// changing are the attributes that a round reads of each function.
var changing = []string{
	"power_state", "power/runtime_status", "current_link_speed", "current_link_width",
	"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal",
}

// sixteen returns a bus of 16 cards, each below a port of its own, and the
// functions that a round reads.
func sixteen(tb testing.TB) (tree *faketree.Tree, functions []string) {
	tb.Helper()
	tree = faketree.New()
	from := load(tb, "bus")
	for i := range 16 {
		port := fmt.Sprintf("0000:%02x:01.0", 0x10+2*i)
		card := fmt.Sprintf("0000:%02x:00.0", 0x11+2*i)
		dir := fmt.Sprintf("/sys/devices/pci0000:%02x/%s", 0x10+2*i, port)
		for address, place := range map[string]string{"0000:67:01.0": dir, gpu: dir + "/" + card} {
			for _, file := range append([]string{"class", "vendor", "device", "subsystem_vendor", "subsystem_device", "revision", "numa_node", "max_link_speed", "max_link_width"}, changing...) {
				text, ok := from.Get(at(address, file))
				if !ok {
					tb.Fatal(file)
				}
				tree.Set(place+"/"+file, text)
			}
			tree.Link(place+"/driver", strings.Repeat("../", strings.Count(place, "/")-1)+"bus/pci/drivers/any")
			tree.Link(at(filepath.Base(place), ""), "../../../"+strings.TrimPrefix(place, "/sys/"))
			functions = append(functions, filepath.Base(place))
		}
	}
	return tree, functions
}

// BenchmarkRound is one round over 16 cards; BenchmarkBareReads beside it
// reads the same attributes and does nothing else.
func BenchmarkRound(b *testing.B) {
	tree, functions := sixteen(b)
	s := open(b, write(b, tree), pcie.Options{})
	if n := len(sample(b, s).Devices); n != len(functions)/2 {
		b.Fatal(n)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sample(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(functions)*len(changing)), "reads/op")
}

func BenchmarkBareReads(b *testing.B) {
	tree, functions := sixteen(b)
	dir := write(b, tree)
	var paths []string
	for _, f := range functions {
		for _, file := range changing {
			paths = append(paths, filepath.Join(dir, at(f, file)))
		}
	}
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range paths {
			fd, err := syscall.Open(p, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Read(fd, buf); err != nil {
				b.Fatal(err)
			}
			syscall.Close(fd)
		}
	}
	b.ReportMetric(float64(len(paths)), "reads/op")
}
