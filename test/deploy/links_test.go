package deploy

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"
)

// TestLinks checks that the chart links to every rule file and every dashboard, and
// that the packaged chart, which has the files themselves, renders the same.
func TestLinks(t *testing.T) {
	for folder, pattern := range map[string]string{"rules": "rules/*.yaml", "dashboards": "dashboards/*.json"} {
		var want []string
		for _, path := range glob(t, pattern) {
			want = append(want, filepath.Base(path))
		}
		var got []string
		for _, path := range glob(t, chart+"/files/"+folder+"/"+filepath.Base(pattern)) {
			got = append(got, filepath.Base(path))
			if from := filepath.Join(filepath.Dir(pattern), filepath.Base(path)); !bytes.Equal(read(t, path), read(t, from)) {
				t.Errorf("%s is not %s", path, from)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("files/%s has %q, want %q", folder, got, want)
		}
	}
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
