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
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// FuzzTree: for any content of a card's file, the card is there, every reading is in
// range, every label is fit and no series occurs twice.
func FuzzTree(f *testing.F) {
	type file struct{ dir, name, text string }
	var files []file
	for _, name := range []string{"intel-n3000-dfl", "intel-pac-a10-dfl", "zynqmp-fpga-manager"} {
		card, dir := load(f, name), f.TempDir()
		if err := card.Write(dir); err != nil {
			f.Fatal(err)
		}
		for _, p := range slices.Sorted(slices.Values(card.Paths())) {
			if text, is := card.Get(p); is && (strings.Contains(p, "fpga") || strings.Contains(p, "iio:device")) {
				files = append(files, file{dir, p, text})
			}
		}
	}
	for i, text := range []string{"", "\n", "0\n", "-1\n", "1e9\n", "0xffffffffffffffff\n", "18446744073709551616\n", "nan\n", "a\x00b\x00", "\xff\xfe\n", "write error\n", "OF_FULLNAME=/../../etc\n"} {
		f.Add(uint16(i*37), text)
		f.Add(uint16(len(files)-1-i), text)
	}
	f.Fuzz(func(t *testing.T, n uint16, text string) {
		file := files[int(n)%len(files)]
		path := filepath.Join(file.dir, file.name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.WriteFile(path, []byte(file.text), 0o644)
		r := sample(t, open(t, sysfs.New(filepath.Join(file.dir, "sys")), quiet))
		if len(r.Devices) != 1 {
			t.Fatalf("%s: %q: %d devices", file.name, text, len(r.Devices))
		}
		check(t, &r.Devices[0])
	})
}

// check fails for what a device must never contain.
func check(t *testing.T, d *collector.Device) {
	t.Helper()
	list := simtest.Series(*d)
	seen := map[string]bool{}
	for i, r := range d.Readings {
		if !r.Metric.Range.Contains(r.Value) || len(r.Labels) != len(r.Metric.Labels) {
			t.Errorf("%s: %s", d.ID, list[i])
		}
		name := simtest.SeriesName(r.Metric, r.Labels)
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
