package baseline_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// TestBroken reads one file per mistake and compares the messages with golden files.
func TestBroken(t *testing.T) { golden.Mistakes(t, baseline.Parse) }

// TestDocumentation: the examples in docs/baseline.md are valid.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/baseline.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("no example")
	}
	for _, b := range blocks {
		if c, err := baseline.Parse("docs/baseline.md", b[1]); err != nil || len(c.Entries) == 0 {
			t.Errorf("%v", err)
		}
	}
}

// TestPatterns: which models a pattern matches.
func TestPatterns(t *testing.T) {
	for pattern, models := range map[string]struct{ yes, no string }{
		"NVIDIA H100":   {"NVIDIA H100", "NVIDIA H100 PCIe|nvidia h100|NVIDIA H10"},
		"NVIDIA H100*":  {"NVIDIA H100|NVIDIA H100 PCIe", "NVIDIA H10|xNVIDIA H100"},
		"*H100*":        {"H100|NVIDIA H100 PCIe", "NVIDIA H10 0"},
		"*PCIe":         {"PCIe|H100 PCIe|PCIe PCIe", "PCIe 5"},
		"*":             {"x", ""},
		"a*b*c":         {"abc|a b c|abbcc|axbxbxc", "ab|acb|abcd|bac"},
		"ab*b":          {"abb|abxb", "ab"},
		"a**c":          {"ac|abc", "a"},
		"[a-z]?":        {"[a-z]?", "bc|b"},
		"\u00e9*\u00e9": {"\u00e9\u00e9|\u00e9x\u00e9", "\u00e9"},
	} {
		c := parse(t, fmt.Sprintf("entries: [{name: a, match: {model: %q}}]", pattern))
		for text, want := range map[string]bool{models.yes: true, models.no: false} {
			for model := range strings.SplitSeq(text, "|") {
				s := snapshot(nil, collector.Device{ID: "D", Class: collector.GPU, Model: model})
				if got := len(judged(c, baseline.Options{}, s)) > 0; got != want {
					t.Errorf("%q matches %q: %v", pattern, model, got)
				}
			}
		}
	}
}

// FuzzParse: the error of Parse is a list of mistakes, each on one line and with a line
// number of the file. Each entry of an accepted catalogue applies to a device.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "testdata/node.yml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 4000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := baseline.Parse("f.yml", data)
		if err != nil {
			if c != nil {
				t.Errorf("%v beside %v", c, err)
			}
			golden.Refused(t, err, data)
			return
		}
		for i := range c.Entries {
			applies(t, c, &c.Entries[i])
		}
	})
}

// applies checks that a device with the values of e matches e without drift. It uses
// patterns as values.
func applies(t *testing.T, c *baseline.Catalogue, e *baseline.Entry) {
	t.Helper()
	or := func(p baseline.Pattern) string { return cmp.Or(string(p), "\U0001f95d") } // matches no other entry
	d := collector.Device{ID: "D", Class: collector.Class(cmp.Or(e.Match.Class, "switch")), Vendor: or(e.Match.Vendor), Model: or(e.Match.Model), Readings: []collector.Reading{
		up, info(collector.FPGAInfo, "", "", cmp.Or(string(e.Match.PCIID), "ffff:ffff"), ""),
	}}
	for component, set := range e.Approved.Firmware {
		for _, p := range set[:min(1, len(set))] {
			d.Readings = append(d.Readings, info(collector.FirmwareInfo, component, string(p)))
		}
	}
	for key, set := range e.Approved.RootKey {
		for _, p := range set[:min(1, len(set))] {
			d.Readings = append(d.Readings, info(collector.FPGARootKeyInfo, key, string(p)))
		}
	}
	var node []collector.Reading
	if len(e.Approved.Driver) > 0 {
		node = append(node, info(collector.DriverInfo, d.Vendor, string(e.Approved.Driver[0]), "", "", ""))
	}
	o := baseline.Options{Labels: map[string]string{}}
	for name, p := range e.Match.Labels {
		o.Labels[name] = string(p)
	}
	got := judged(c, o, snapshot(node, d))
	// If an earlier entry has fewer criteria, it matches instead.
	if len(got) == 0 || got[0] != "D is "+string(e.Name) {
		return
	}
	if bad := drifting(got); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
}
