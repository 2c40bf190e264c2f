// Package compare compares the output of "nvidia-smi -q -x" with a metrics page of
// accel-exporter on the same machine, field by field. fields.tsv lists the fields, and
// device.sh captures both, and more, on a machine with GPUs.
package compare

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages has the page of a scenario with the board of each capture. The others have a
// page of the exporter beside them, of the same machine and moment.
var pages = map[string]string{
	"qx-h100.xml": "h100-8", "qx-b200.xml": "b200-8", "qx-gb200.xml": "gb200-4", "qx-a100.xml": "a100", "qx-l40s.xml": "l40s", "qx-t4.xml": "t4",
}

// folder has the captures: NAME.xml, and the page of the same moment in NAME.metrics.
var folder = flag.String("captures", "../../fixtures/captures", "folder with the captures to compare")

// expectation is a line of testdata/expected.tsv.
type expectation struct {
	capture, reason string
	field           *regexp.Regexp
	seen            bool
}

// TestCaptures: a page has the values of the machine, and the simulated boards the values of
// the captured boards, except for the differences in testdata/expected.tsv, each with its reason.
func TestCaptures(t *testing.T) {
	data, err := os.ReadFile("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var expected []*expectation
	for line := range strings.Lines(string(data)) {
		if c := strings.Split(strings.TrimSpace(line), "\t"); len(c) == 3 {
			expected = append(expected, &expectation{c[0], c[2], regexp.MustCompile(c[1]), false})
		}
	}
	captures, err := filepath.Glob(filepath.Join(*folder, "*.xml"))
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, path := range captures {
		capture := filepath.Base(path)
		page := strings.TrimSuffix(path, ".xml") + ".metrics"
		if scenario := pages[capture]; scenario != "" {
			page = "../../cmd/accel-exporter/testdata/golden/" + scenario + ".metrics"
		}
		xml, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		differences, err := compare(xml, text)
		if err != nil {
			t.Errorf("%s: %v", capture, err)
		}
		for _, d := range differences {
			known := false
			for _, e := range expected {
				if m, _ := filepath.Match(e.capture, capture); m && e.field.MatchString(d.gpu+" "+d.field) {
					e.seen, known = true, true
				}
			}
			if !known {
				t.Errorf("%s: GPU %s: %s is %q, %s is %q", capture, d.gpu, d.field, d.xml, d.series, d.value)
			}
		}
	}
	for _, e := range expected {
		if !e.seen && *folder == flag.Lookup("captures").DefValue {
			t.Errorf("expected.tsv: %s %s: no difference of this kind is left", e.capture, e.field)
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte(`<a><gpu><uuid>GPU-1</uuid><fan_speed>30 %</fan_speed></gpu></a>`), []byte(`accel_device_info{device="GPU-1"} 1`+"\n"))
	f.Add([]byte(`<a><gpu><b/></gpu></a>`), []byte(`accel_device_info{device="\"",x="`+"\n"))
	f.Fuzz(func(_ *testing.T, xml, text []byte) {
		_, _ = compare(xml, text) // which does not panic
	})
}
