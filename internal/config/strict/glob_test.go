package strict_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// TestGlob: each file once, and every pattern that is none of a file is named.
func TestGlob(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := strict.Glob([]string{filepath.Join(dir, "b.yaml"), filepath.Join(dir, "*.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "b.yaml"), filepath.Join(dir, "a.yaml")}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	_, err = strict.Glob([]string{filepath.Join(dir, "*.yml"), "[", filepath.Join(dir, "a.yaml")})
	if err == nil || !strings.Contains(err.Error(), "*.yml: no such file") || !strings.Contains(err.Error(), "[: ") {
		t.Errorf("patterns that match nothing: %v", err)
	}
}
