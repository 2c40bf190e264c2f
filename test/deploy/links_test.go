package deploy

import (
	"bytes"
	"path/filepath"
	"testing"
)

// TestLinks checks that the packaged chart, which has the rules and dashboards
// themselves in place of links, renders the same.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	if _, err := helm("package", chart, "--destination="+dir); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("%q, %v", packages, err)
	}
	flags := "--set=prometheusAdapter.enabled=true," + remediatorOn
	folder, err := render("everything", flags)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := renderChart(packages[0], "everything", flags)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(folder, packed) {
		t.Error("the package renders differently from the folder")
	}
}
