package simtest

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// Opener opens a Source over the tree sys. slow: it reads files that seldom change in
// each round.
type Opener func(tb testing.TB, sys string, slow bool, emit func(collector.Event)) collector.Source

// Cases plays the files of testdata/cases, see golden.Cases, with a Source over trees. A
// case is
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
func Cases(t *testing.T, open Opener) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	unchanged := map[string][]string{} // the reports of trees without changes
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			golden.Cases(t, file, func(t *testing.T, head, lines []string) []string { return play(t, open, unchanged, head, lines) })
		})
	}
}

// play returns the lines of a case with the differences that its rounds have now.
func play(t *testing.T, open Opener, unchanged map[string][]string, head, lines []string) (played []string) {
	var names []string
	for _, line := range head {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "let" {
			names = append(names, "$"+f[1], f[2])
		}
	}
	var (
		tree    *faketree.Tree
		source  collector.Source
		sys     string
		slow    bool
		emitted = make(chan collector.Event, 1024)
		before  []string
		changes strings.Builder
	)
	for _, line := range lines {
		played = append(played, line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "tree":
			base, variant, _ := strings.Cut(rest, " ")
			if unchanged[base] == nil {
				whole := MountTree(t, LoadTree(t, base))
				r, err := Fresh(t, open(t, whole, false, func(collector.Event) {}))
				unchanged[base] = report(r, err, whole, nil)
			}
			before, tree = unchanged[base], LoadTree(t, cmp.Or(variant, base))
		case "slow":
			slow = true
		case "round":
			if err := tree.Edit("case", []byte(strings.NewReplacer(names...).Replace(changes.String()))); err != nil {
				t.Fatal(err)
			}
			changes.Reset()
			if source == nil {
				sys = MountTree(t, tree)
				source = open(t, sys, slow, func(e collector.Event) { emitted <- e })
			}
			r, err := Fresh(t, source)
			now := report(r, err, sys, emitted)
			played = append(played, difference(before, now)...)
			before = now
		default:
			changes.WriteString(line + "\n")
		}
	}
	return played
}

// Fresh returns a Round in which every device that answers was read after the call: a
// Source may return a slow device's previous result.
func Fresh(tb testing.TB, s collector.Source) (r collector.Round, err error) {
	tb.Helper()
	for began := time.Now(); time.Since(began) < Patience; {
		ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
		r, err = s.Sample(ctx)
		cancel()
		if !slices.ContainsFunc(r.Devices, func(d collector.Device) bool {
			responds, known := Value(d, collector.PCIeResponding, d.ID)
			return d.Sampled.Before(began) && d.Down == "" && (responds == 1 || !known)
		}) {
			return r, err
		}
	}
	tb.Fatal("a device has not answered")
	return r, err
}

// report returns the lines of a Round's page, its errors and the events.
func report(r collector.Round, err error, sys string, emitted chan collector.Event) []string {
	list := strings.FieldsFunc(Page(r), func(c rune) bool { return c == '\n' })
	if err != nil {
		list = append(list, "error: "+strings.NewReplacer(sys, "", "\n", "; ").Replace(err.Error()))
	}
	for len(emitted) > 0 {
		e := <-emitted
		list = append(list, "event of "+e.Device+": "+e.Detail)
	}
	return list
}

// difference returns the lines of before that now does not have, and the other way. Of a
// device that has left, only its first line is one.
func difference(before, now []string) (out []string) {
	counts := map[string]int{}
	for _, line := range now {
		counts[line]++
	}
	left := false
	for _, line := range before {
		if first, _, ok := strings.Cut(line, " vendor="); ok {
			left = !slices.ContainsFunc(now, func(l string) bool { return strings.HasPrefix(l, first+" ") })
			if left {
				out = append(out, "- "+line)
			}
		}
		if left && !strings.Contains(line, " device=") {
			continue
		}
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

// Page is a Round as text.
func Page(r collector.Round) string {
	var b strings.Builder
	for _, d := range r.Devices {
		fmt.Fprintf(&b, "device %s vendor=%s model=%q pci=%s functions=%v driver=%q kube=%v down=%q\n", d.ID, d.Vendor, d.Model, d.PCI, d.Functions, d.Driver, d.KubeIDs, d.Down)
		for _, s := range Series(d) {
			fmt.Fprintln(&b, s)
		}
		for _, j := range d.Rejects {
			fmt.Fprintf(&b, "rejected %s: %s\n", j.Metric.Name, j.Reason)
		}
	}
	return b.String()
}

// Series returns the readings of d as lines of the exposition, sorted.
func Series(d collector.Device) (list []string) {
	for _, r := range d.Readings {
		list = append(list, fmt.Sprintf("%s %v", SeriesName(r.Metric, r.Labels), r.Value))
	}
	slices.Sort(list)
	return list
}

// SeriesName is a series as in the exposition.
func SeriesName(m *collector.Metric, labels []string) string {
	var pairs []string
	for i, l := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", m.Labels[i], l))
	}
	if len(pairs) == 0 {
		return m.Name
	}
	return m.Name + "{" + strings.Join(pairs, ",") + "}"
}
