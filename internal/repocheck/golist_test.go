package repocheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// pkg has the fields of go list that the rules use.
type pkg struct {
	ImportPath string
	Standard   bool
	Doc        string
	Imports    []string
	Deps       []string
	CgoFiles   []string
	GoFiles    []string
	Dir        string
}

// goList returns the packages of the module and everything they import,
// without tests.
func goList(t *testing.T) map[string]*pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Doc,Imports,Deps,CgoFiles,GoFiles,Dir", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	list := map[string]*pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list[p.ImportPath] = p
	}
}

// short abbreviates the module's name to ".".
func short(importPath string) string {
	if rest, mine := strings.CutPrefix(importPath, module); mine && (rest == "" || rest[0] == '/') {
		return "." + rest
	}
	return importPath
}

func isOwn(p *pkg) bool { return strings.HasPrefix(short(p.ImportPath), ".") }

func matches(pattern, name string) bool {
	base, tree := strings.CutSuffix(pattern, "/...")
	return name == base || tree && strings.HasPrefix(name, base+"/")
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// applies returns the module's packages that r restricts.
func (r *rule) applies(list map[string]*pkg) []*pkg {
	var in []*pkg
	for _, p := range list {
		if name := short(p.ImportPath); isOwn(p) && matchesAny(r.in, name) && !matchesAny(r.except, name) {
			in = append(in, p)
		}
	}
	slices.SortFunc(in, func(a, b *pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return in
}

// broken returns one line for each banned import.
func (r *rule) broken(list map[string]*pkg) []string {
	var lines []string
	for _, p := range r.applies(list) {
		imports := p.Deps
		if r.direct {
			imports = p.Imports
		}
		for _, i := range imports {
			dep := list[i]
			foreign := dep != nil && !isOwn(dep) && !dep.Standard && slices.Contains(r.ban, "third-party")
			if i != p.ImportPath && (foreign || matchesAny(r.ban, short(i))) {
				lines = append(lines, fmt.Sprintf("%s imports %s%s: %s", p.ImportPath, i, via(list, p, i), r.why))
			}
		}
	}
	return lines
}

// via names the direct import of p that leads to target.
func via(list map[string]*pkg, p *pkg, target string) string {
	if slices.Contains(p.Imports, target) {
		return ""
	}
	for _, i := range p.Imports {
		if d := list[i]; d != nil && slices.Contains(d.Deps, target) {
			return " through " + i
		}
	}
	return ""
}
