//go:build linux && cgo

package nvidia

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestChangedConstants checks that this package follows the driver wherever it
// uses a constant of nvml.h whose value depends on the release. The table has the
// values in the headers of go-nvml's releases.
func TestChangedConstants(t *testing.T) {
	// drivers are the versions in the columns of the table.
	drivers := []string{"550.54.15", "575.51.03", "580.65.06", "590.48.01", "595.91.07", "615.36.04"}
	table, err := os.ReadFile("testdata/nvml-constants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	used := usedConstants(t)
	if !used["NVML_FI_DEV_MEMORY_TEMP"] {
		t.Fatal("no use of a constant was found")
	}
	moved := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if !used[cells[0]] {
			continue
		}
		if !strings.HasPrefix(cells[0], "NVML_FI_") || len(cells) != 1+len(drivers) {
			t.Errorf("%s depends on the release: %v", cells[0], cells[1:])
			continue
		}
		moved++
		header, _ := strconv.ParseUint(cells[len(drivers)], 10, 32)
		for i, driver := range drivers {
			id, ok := numberingOf(driver).id(uint32(header))
			if got := strconv.Itoa(int(id)); ok && got != cells[1+i] || !ok && cells[1+i] != "" {
				t.Errorf("%s is read as field %s from driver %s, want %q", cells[0], got, driver, cells[1+i])
			}
		}
	}
	if moved < 4 {
		t.Errorf("%d fields depend on the release, want 4 or more", moved)
	}
}

// usedConstants are the names in nvml.h of the constants that the package uses.
func usedConstants(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "nvml" {
					used["NVML_"+s.Sel.Name], used["nvml"+s.Sel.Name] = true, true
				}
			}
			return true
		})
	}
	return used
}
