package fpga_test

import (
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
			s := open(t, mounted(t, tree), fpga.Options{PollInterval: -1, SlowInterval: time.Hour})
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
				if strings.HasSuffix(f, "_label") || strings.HasSuffix(f, "_crit") {
					t.Errorf("%s is read in every round", f)
				}
			}
			if len(files) >= len(first) {
				t.Errorf("%d files in a round, %d in the first", len(files), len(first))
			}
			t.Logf("%d read(2) in a round, %d in the first", tree.TotalReads(), len(first))
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
