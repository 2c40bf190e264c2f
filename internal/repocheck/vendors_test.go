package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// place is a file with the name of a source or a vendor: files are patterns,
// one of which must match the regular expression expr.
type place struct{ files, expr, missing string }

// places name every source by hand.
var places = []place{
	{"collector/{source}/*.go", `package {source}\n`, "no package"},
	{"cmd/accel-exporter/sources.go", `\b{source}\.Name\b`, "no entry in specs"},
	{"internal/config/*.go", `yaml:"{source}"`, "no field of Sources"},
	{"docs/privileges.md", "(?m)^\\| `{source}`", "no row of what it opens"},
	{"docs/*.md README.md", `collector\.{source}\b|collector\.[^|\n]*\.{source}\b`, "no mention of --collector.{source}"},
	{"deploy/helm/accel-exporter/templates/*.tpl", `--(no-collector\.)?{source}\b`, "no argument for it"},
}

// vendorPlaces name every vendor by hand.
var vendorPlaces = []place{
	{"cmd/accel-exporter/testdata/golden/*.metrics collector/{source}/testdata/*.golden", `vendor="{name}"`, "no golden case with a device"},
}

// pciPlaces name every vendor id by hand, as four hexadecimal digits.
var pciPlaces = []place{
	{"deploy/helm/accel-exporter/values.yaml", `pci-(\w{4}_)?{id}\.present`, "no node label in affinity"},
	{"deploy/kustomize/base/daemonset.yaml", `pci-(\w{4}_)?{id}\.present`, "no node label in affinity"},
}

// placesExempt are accepted findings, with the reason.
var placesExempt = map[string]string{
	"vendor silicom: no golden case with a device in cmd/accel-exporter/testdata/golden/*.metrics collector/fpga/testdata/*.golden": "no public capture of an N5010 or N5011 exists",
	"PCI id 1c2c: no node label in affinity in deploy/helm/accel-exporter/values.yaml":                                              "Silicom sells network cards under the same id: label such nodes by hand",
	"PCI id 1c2c: no node label in affinity in deploy/kustomize/base/daemonset.yaml":                                                "as in the chart",
	"PCI id 1d0f: no node label in affinity in deploy/kustomize/base/daemonset.yaml":                                                "as in the chart",
	"PCI id 1d0f: no node label in affinity in deploy/helm/accel-exporter/values.yaml":                                              "every EC2 instance has functions of Amazon; the affinity names instance types",
}

// missing returns one line for each file that does not name the source or the vendor.
func missing(v collector.Vendor) []string {
	var lines []string
	check := func(what string, p place, id string) {
		fill := strings.NewReplacer("{source}", v.Source, "{name}", v.Name, "{id}", id).Replace
		if files := fill(p.files); !regexp.MustCompile(fill(p.expr)).MatchString(readAll(files)) {
			lines = append(lines, fmt.Sprintf("%s: %s in %s", fill(what), fill(p.missing), files))
		}
	}
	for _, p := range places {
		check("source {source}", p, "")
	}
	if v.Name == "" { // a source of several vendors
		return lines
	}
	for _, p := range vendorPlaces {
		check("vendor {name}", p, "")
	}
	for _, id := range v.PCI {
		for _, p := range pciPlaces {
			check("PCI id {id}", p, fmt.Sprintf("%04x", id))
		}
	}
	return slices.DeleteFunc(lines, func(l string) bool { return placesExempt[l] != "" })
}

// readAll returns the files of the repository that match the patterns, joined.
func readAll(patterns string) string {
	var all strings.Builder
	for pattern := range strings.FieldsSeq(patterns) {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			panic(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				panic(err)
			}
			all.Write(data)
		}
	}
	return all.String()
}

// TestVendors names every place that lacks a vendor of the table or a source.
func TestVendors(t *testing.T) {
	vendors := slices.Clone(collector.Vendors())
	for _, v := range collector.Vendors() {
		for _, source := range v.More {
			vendors = append(vendors, collector.Vendor{Source: source})
		}
	}
	for _, name := range sources() {
		vendors = append(vendors, collector.Vendor{Source: name})
	}
	reported := map[string]bool{}
	for _, v := range vendors {
		for _, line := range missing(v) {
			if !reported[line] {
				t.Error(line)
			}
			reported[line] = true
		}
	}
}
