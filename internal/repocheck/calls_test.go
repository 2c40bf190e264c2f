package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onlyInCmd are functions of package os that read or end the process.
var onlyInCmd = []string{"Exit", "Getenv", "LookupEnv", "Environ", "Setenv"}

// callsExempt are the exceptions outside cmd, with the reason.
var callsExempt = map[string]string{
	"dashboards":          "a command of the repository",
	"internal/gen/docs":   "a command of the repository",
	"test/fleet":          "a command of the repository",
	"test/nvml":           "a command of the repository",
	"test/demo":           "a command of the repository",
	"test/incidents/play": "a command of the repository",
	"tools/compare":       "a command of the repository",
	"tools/licenses":      "a command of the repository",

	"test/stack":           "a test harness: it sets the environment of the programs it runs",
	"test/incidents":       "a test harness: it sets the environment of the programs it runs",
	"internal/sim/simtest": "a test harness: it starts tests in separate processes",
	"internal/sim":         "a test harness: it sets the environment of the programs it runs",
}

func TestProcessBelongsToCmd(t *testing.T) {
	for _, name := range tracked(t) {
		dir := filepath.ToSlash(filepath.Dir(name))
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || matches("cmd/...", dir) || callsExempt[dir] != "" {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, read(t, name), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(onlyInCmd, sel.Sel.Name) {
				t.Errorf("%s: os.%s: only cmd may read the environment or end the process", fset.Position(n.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}
