package fpga_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// TestXilinxReads: a round reads each file that it opens once: as few read(2)
// as whoever wants to know the same must make.
func TestXilinxReads(t *testing.T) {
	for _, name := range []string{"xilinx-u250-xrt", "vck5000-xrt", "v80-ami", "aws-f2"} {
		load := load
		if name == "vck5000-xrt" || name == "v80-ami" {
			load = composed
		}
		tree := load(t, name)
		s := open(t, mounted(t, tree), quiet)
		sample(t, s) // finds the cards; for AWS it reads the ids of all functions
		for round := range 3 {
			tree.Forget()
			sample(t, s)
			files := opened(tree)
			for _, p := range files {
				if n := tree.Reads(p); n != 1 || tree.Opens(p) != 1 {
					t.Errorf("%s, round %d: %s was opened %d times and read %d times", name, round, p, tree.Opens(p), n)
				}
			}
			if got := tree.TotalReads(); got != len(files) {
				t.Errorf("%s, round %d: %d reads of %d files", name, round, got, len(files))
			}
		}
	}
}

// alveos is a machine with sixteen cards.
func alveos(tb testing.TB) *faketree.Tree {
	tb.Helper()
	machine := faketree.New()
	for i := range benchCards {
		if err := machine.Merge(load(tb, "xilinx-u250-xrt")); err != nil {
			tb.Fatal(fmt.Errorf("card %d: %w", i, err))
		}
	}
	return machine
}

const benchCards = 16

// BenchmarkXRTRound is one round over 16 cards, after the first.
func BenchmarkXRTRound(b *testing.B) {
	s := open(b, written(b, alveos(b)), quiet)
	round := func() {
		r, err := s.Sample(context.Background())
		if err != nil || len(r.Devices) != benchCards {
			b.Fatal(len(r.Devices), err)
		}
	}
	round()
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

// BenchmarkXRTBareReads opens, reads and closes the files of such a round, one
// after the other, into one buffer.
func BenchmarkXRTBareReads(b *testing.B) {
	files := roundFiles(b)
	buf := make([]byte, sysfs.Page)
	b.ReportAllocs()
	for b.Loop() {
		for _, f := range files {
			fd, err := syscall.Open(f, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Read(fd, buf); err != nil {
				b.Fatal(err)
			}
			syscall.Close(fd)
		}
	}
	b.ReportMetric(float64(len(files)), "files")
}

// roundFiles returns the files that a round reads, in a tree that is written.
func roundFiles(b *testing.B) []string {
	b.Helper()
	tree := alveos(b)
	s := fpga.New(mounted(b, tree), quiet)
	defer s.Close()
	for range 2 {
		tree.Forget()
		if _, err := s.Sample(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	if err := tree.Write(dir); err != nil {
		b.Fatal(err)
	}
	files := opened(tree)
	for i := range files {
		files[i] = filepath.Join(dir, files[i])
	}
	return files
}
