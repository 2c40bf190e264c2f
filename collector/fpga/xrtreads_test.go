package fpga_test

import "testing"

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
