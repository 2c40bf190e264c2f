//go:build linux && cgo

package nvidia

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryCallIsGuarded parses this package and go-nvml's. A method of go-nvml
// that ends in a C function may be used only within the arguments of a call
// that also gets the *call of that function. Those calls go through do, ask and
// ask2, which look up the symbol: a missing one would end the process.
func TestEveryCallIsGuarded(t *testing.T) {
	dir := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")) + "/pkg/nvml"
	header, err := os.ReadFile(dir + "/nvml.h")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, word := range regexp.MustCompile(`\bnvml\w+`).FindAllString(string(header), -1) {
		declared[word] = true
	}
	for _, c := range calls {
		for _, name := range append([]string{c.name}, c.versions...) {
			if !declared[name] {
				t.Errorf("%s is not in nvml.h", name)
			}
		}
	}
	symbols := symbolsOf(t, dir)
	seen := 0
	for path, file := range parsed(t, ".") {
		if strings.HasSuffix(path, "_test.go") || path == "stub.go" {
			continue
		}
		var stack []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			stack = append(stack, n)
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || symbols[sel.Sel.Name] == nil || isField(sel) {
				return true
			}
			seen++
			if err := guarded(stack, file, symbols[sel.Sel.Name]); err != nil {
				t.Errorf("%s: %s: %v", path, sel.Sel.Name, err)
			}
			return true
		})
	}
	if seen < 60 {
		t.Errorf("found %d mentions of go-nvml's methods: the test looks in the wrong place", seen)
	}
}

// isField identifies the struct field with the name of a method.
func isField(sel *ast.SelectorExpr) bool {
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "m" && sel.Sel.Name == "Free"
}

// guarded looks for the innermost call around a mention that names a *call.
func guarded(stack []ast.Node, file *ast.File, symbols map[string]bool) error {
	for _, n := range slices.Backward(stack) {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		for _, arg := range c.Args {
			for _, name := range callNames(arg, file) {
				for _, have := range calls {
					if have.name == name && (symbols[name] || slices.ContainsFunc(have.versions, func(v string) bool { return symbols[v] })) {
						return nil
					}
				}
			}
		}
	}
	return fmt.Errorf("not within a call that is given the *call of one of %v", symbols)
}

// callNames returns the C functions of an argument: its name, of a package-level
// callX or callX[i], or, for the field x.call, of its file.
func callNames(arg ast.Expr, file *ast.File) []string {
	switch a := arg.(type) {
	case *ast.BasicLit:
		return literals(a)
	case *ast.IndexExpr:
		return callNames(a.X, file)
	case *ast.Ident:
		return declared[a.Name]
	case *ast.SelectorExpr:
		if a.Sel.Name == "call" {
			return literals(file)
		}
	}
	return nil
}

// declared are the C functions of each package-level callX.
var declared = map[string][]string{}

// literals are all names of C functions in a file.
func literals(n ast.Node) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, _ := strconv.Unquote(lit.Value); strings.HasPrefix(s, "nvml") {
				names = append(names, s)
			}
		}
		return true
	})
	return names
}

// parsed parses the Go files of a folder, and notes the callX variables.
func parsed(t *testing.T, dir string) map[string]*ast.File {
	files := map[string]*ast.File{}
	paths, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = file
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && strings.HasPrefix(v.Names[0].Name, "call") && len(v.Values) == 1 {
				declared[v.Names[0].Name] = literals(v.Values[0])
			}
			return true
		})
	}
	return files
}

// symbolsOf maps go-nvml's methods to the C functions in their bodies; a method
// that only returns a handler maps to the handler's.
func symbolsOf(t *testing.T, dir string) map[string]map[string]bool {
	symbols, handlers, returns := map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]string{}
	for path, file := range parsed(t, dir) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !f.Name.IsExported() {
				continue
			}
			into, name := symbols, f.Name.Name
			if f.Recv != nil {
				if r := fmt.Sprint(f.Recv.List[0].Type); handler.MatchString(r) {
					into, name = handlers, r
				}
			}
			if r := f.Type.Results; r != nil && len(r.List) == 1 && handler.MatchString(fmt.Sprint(r.List[0].Type)) {
				returns[name] = fmt.Sprint(r.List[0].Type)
			}
			addSymbols(into, name, f.Body)
		}
	}
	for method, handler := range returns {
		if symbols[method] == nil {
			symbols[method] = handlers[handler]
		}
	}
	return symbols
}

var (
	binding = regexp.MustCompile(`^nvml[A-Z]`)
	handler = regexp.MustCompile(`(Handler|SupportV|VType)$`)
	version = regexp.MustCompile(`_v\d+$`)
)

func addSymbols(symbols map[string]map[string]bool, method string, body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		id, ok := c.Fun.(*ast.Ident)
		if !ok {
			return true
		}
		name := strings.TrimSuffix(id.Name, "Stub")
		if strings.HasPrefix(name, "deviceGet") {
			name = "nvmlD" + name[1:]
		}
		if !binding.MatchString(name) {
			return true
		}
		if symbols[method] == nil {
			symbols[method] = map[string]bool{}
		}
		symbols[method][name] = true
		for v := 1; v <= 4 && !version.MatchString(name); v++ {
			symbols[method][fmt.Sprintf("%s_v%d", name, v)] = true
		}
		return true
	})
}

func run(t *testing.T, name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
