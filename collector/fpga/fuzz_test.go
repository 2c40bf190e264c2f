package fpga_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// FuzzTree: for any content of a card's file, the other cards are read, every
// reading is in range, every label is fit and no series occurs twice.
func FuzzTree(f *testing.F) {
	machine := faketree.New()
	for _, name := range []string{"intel-n3000-dfl", "intel-pac-a10-dfl", "zynqmp-fpga-manager"} {
		if err := machine.Merge(load(f, name)); err != nil {
			f.Fatal(err)
		}
	}
	var files []string
	for _, p := range machine.Paths() {
		if _, file := machine.Get(p); file && (strings.Contains(p, "fpga") || strings.Contains(p, "iio:device")) {
			files = append(files, p)
		}
	}
	slices.Sort(files)
	for i, text := range []string{"", "\n", "0\n", "-1\n", "1e9\n", "0xffffffffffffffff\n", "18446744073709551616\n", "nan\n", "a\x00b\x00", "\xff\xfe\n", "write error\n", "OF_FULLNAME=/../../etc\n"} {
		f.Add(uint16(i*37), text)
		f.Add(uint16(len(files)-1-i), text)
	}
	dir := f.TempDir()
	if err := machine.Write(dir); err != nil {
		f.Fatal(err)
	}
	fs := sysfs.New(filepath.Join(dir, "sys"))
	f.Fuzz(func(t *testing.T, n uint16, text string) {
		name := files[int(n)%len(files)]
		was, _ := machine.Get(name)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.WriteFile(file, []byte(was), 0o644)
		s := open(t, fs, quiet)
		r := sample(t, s)
		if len(r.Devices) != 3 {
			t.Fatalf("%s: %q: %d devices", name, text, len(r.Devices))
		}
		for i := range r.Devices {
			check(t, &r.Devices[i])
		}
	})
}

// check fails for what a device must never contain.
func check(t *testing.T, d *collector.Device) {
	t.Helper()
	list := series(d)
	seen := map[string]bool{}
	for i, r := range d.Readings {
		if !r.Metric.Range.Contains(r.Value) || len(r.Labels) != len(r.Metric.Labels) {
			t.Errorf("%s: %s", d.ID, list[i])
		}
		name := seriesName(r.Metric, r.Labels)
		if seen[name] {
			t.Errorf("%s: %s twice", d.ID, name)
		}
		seen[name] = true
		for _, l := range r.Labels {
			if !utf8.ValidString(l) || len(l) > 200 || strings.ContainsAny(l, "\n\x00") {
				t.Errorf("%s: label %q of %s", d.ID, l, r.Metric.Name)
			}
		}
	}
	if d.ID == "" || d.Class != collector.FPGA || !utf8.ValidString(d.Model) {
		t.Errorf("%+v", d)
	}
}
