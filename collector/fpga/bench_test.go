package fpga_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// TestReadsPerRound: a round reads each file of a card once, by one read(2),
// and reads no more files than it makes series of. Constant files are not read
// again.
func TestReadsPerRound(t *testing.T) {
	for _, name := range trees {
		t.Run(name, func(t *testing.T) {
			tree := load(t, name)
			fs := mounted(t, tree)
			s := open(t, fs, fpga.Options{PollInterval: -1, SlowInterval: time.Hour})
			sample(t, s)
			first := opened(tree)
			// round is one round that has waited for the read of the card.
			round := func() {
				for {
					sample(t, s) // then no read is in flight
					tree.Forget()
					begin := time.Now()
					r, _ := s.Sample(t.Context())
					if !slices.ContainsFunc(r.Devices, func(d collector.Device) bool { return d.Down == "" && d.Sampled.Before(begin) }) {
						return
					}
				}
			}
			round()
			files := opened(tree)
			for _, f := range files {
				if n := tree.Reads(f); n != 1 || tree.Opens(f) != 1 {
					t.Errorf("%s: %d opens, %d reads; want one", f, tree.Opens(f), n)
				}
				if strings.HasSuffix(f, "_label") || strings.HasSuffix(f, "_crit") || strings.HasSuffix(f, "flash_count") {
					t.Errorf("%s is read in every round", f)
				}
			}
			if len(files) >= len(first) {
				t.Errorf("%d files in a round, %d in the first", len(files), len(first))
			}
			t.Logf("%d read(2) in a round, %d in the first", tree.TotalReads(), len(first))

			// The same by hand.
			tree.Forget()
			for _, f := range files {
				fs.Read(strings.TrimPrefix(f, "/sys/")) // some answer with an errno
			}
			bare := tree.TotalReads()
			round()
			n := 0
			for _, f := range files { // others are read at intervals
				n += tree.Reads(f)
			}
			if n > bare {
				t.Errorf("%d read(2) in a round, %d by hand", n, bare)
			}
		})
	}
}

// opened are the files of a tree that were opened.
func opened(tree *faketree.Tree) []string {
	return slices.DeleteFunc(tree.Opened(), func(p string) bool {
		_, file := tree.Get(p)
		return !file && tree.Err(p) == 0
	})
}

// sixteen is a machine with sixteen cards: N3000, PAC A10 and N6001.
func sixteen(tb testing.TB) *faketree.Tree {
	tb.Helper()
	machine := faketree.New()
	for i := range 16 {
		name := []string{"intel-n3000-dfl", "intel-pac-a10-dfl", "intel-n6001-ofs", "intel-n3000-dfl"}[i%4]
		if err := machine.Merge(load(tb, name)); err != nil {
			tb.Fatal(fmt.Errorf("card %d: %w", i, err))
		}
	}
	return machine
}

// BenchmarkRound is a round over sixteen cards, from files.
func BenchmarkRound(b *testing.B) {
	fs := written(b, sixteen(b))
	s := open(b, fs, fpga.Options{PollInterval: -1, SlowInterval: time.Hour})
	if n := len(sample(b, s).Devices); n != 16 {
		b.Fatalf("%d cards", n)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sample(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
