package fpga_test

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// TestCases plays the files of testdata/cases, one for each family. A case is
//
//	case NAME
//	tree TREE [VARIANT]
//	slow                     files that seldom change are read in each round too
//	<lines of a tree>        change the tree, or its variant; see faketree.Tree.Edit
//	round
//	<the difference>         written by -update: review it
//
// with more changes and rounds of the same Source. The difference has the lines of
// the page that have gone (-) and come (+) since the round before; for the first
// round, since a round over TREE without changes. "let NAME PATH" at the beginning
// of the file defines $NAME.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { golden.Cases(t, file, play) })
	}
}

// play returns the lines of a case with the differences that its rounds have now.
func play(t *testing.T, head, lines []string) (played []string) {
	var names []string
	for _, line := range head {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "let" {
			names = append(names, "$"+f[1], f[2])
		}
	}
	var (
		tree    *faketree.Tree
		s       *fpga.Source
		root    string
		emitted events
		before  []string
		changes strings.Builder
		options = fpga.Options{PollInterval: -1, Emit: emitted.emit}
	)
	for _, line := range lines {
		played = append(played, line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "tree":
			base, variant, _ := strings.Cut(rest, " ")
			r, err := attempt(t, open(t, mounted(t, load(t, base)), quiet))
			before, tree = report(r, err, "", nil), load(t, cmp.Or(variant, base))
		case "slow":
			options.SlowInterval = time.Nanosecond
		case "round":
			if err := tree.Edit("case", []byte(strings.NewReplacer(names...).Replace(changes.String()))); err != nil {
				t.Fatal(err)
			}
			changes.Reset()
			if s == nil {
				fs := mounted(t, tree)
				root, s = fs.Root(), open(t, fs, options)
			}
			r, err := attempt(t, s)
			now := report(r, err, root, emitted.take())
			played = append(played, difference(before, now)...)
			before = now
		default:
			changes.WriteString(line + "\n")
		}
	}
	return played
}

// attempt is a Round in which every device was read after the call, or an error.
func attempt(t testing.TB, s *fpga.Source) (r collector.Round, err error) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err = s.Sample(ctx)
		cancel()
		if !slices.ContainsFunc(r.Devices, func(d collector.Device) bool { return d.Sampled.Before(began) && d.Down == "" }) {
			return r, err
		}
	}
	t.Fatal("a card has not answered for two minutes")
	return r, err
}

// report returns the lines of a Round's page, its errors and the events.
func report(r collector.Round, err error, root string, events []collector.Event) []string {
	list := strings.Split(strings.TrimSpace(page(r)), "\n")
	if err != nil {
		list = append(list, "error: "+strings.ReplaceAll(strings.ReplaceAll(err.Error(), root, ""), "\n", "; "))
	}
	for _, e := range events {
		list = append(list, "event of "+e.Device+": "+e.Detail)
	}
	return list
}

func difference(before, now []string) (out []string) {
	counts := map[string]int{}
	for _, line := range now {
		counts[line]++
	}
	for _, line := range before {
		if counts[line]--; counts[line] < 0 {
			out = append(out, "- "+line)
		}
	}
	for _, line := range now {
		if counts[line]--; counts[line] >= 0 {
			out = append(out, "+ "+line)
		}
	}
	return out
}
