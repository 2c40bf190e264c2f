// Command licenses lists the modules that the shipped programs link, with their
// licences, and collects the texts of these licences.
//
//	licenses [-check] ROOT          writes or compares ROOT/docs/licenses.md
//	licenses -texts PROGRAM ROOT    prints the texts for a program of ROOT/cmd
//
// A module whose licence is unknown, or not among the licences that this project accepts, is
// an error: a new dependency is noticed before it is shipped.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// accepted are the licences that permit to ship a program under Apache-2.0 without
// its source.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// programs are the shipped ones, with the value of CGO_ENABLED they are built with.
var programs = []struct{ name, cgo string }{{"accel-exporter", "1"}, {"accel-remediator", "0"}}

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
	licences           []string
	in                 []string // programs
	dirs               []string // of linked packages, and those above them
}

func main() {
	check := flag.Bool("check", false, "fail if the page is not current")
	texts := flag.String("texts", "", "print the texts for this program")
	flag.Parse()
	if err := run(flag.Arg(0), *texts, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, program string, check bool) error {
	if program != "" {
		list, err := linked(root, program)
		if err != nil {
			return err
		}
		return printTexts(os.Stdout, list)
	}
	list, err := everything(root)
	if err != nil {
		return err
	}
	file := filepath.Join(root, "docs/licenses.md")
	want := page(list)
	if !check {
		return os.WriteFile(file, want, 0o644)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		return errors.Join(err, errors.New("docs/licenses.md is not current: run make generate"))
	}
	return nil
}

// everything returns the modules of all programs.
func everything(root string) ([]*module, error) {
	known := map[string]*module{}
	for _, p := range programs {
		list, err := linked(root, p.name)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			key := m.Path + " " + m.Version
			if known[key] == nil {
				known[key] = m
			}
			known[key].in = append(known[key].in, p.name)
		}
	}
	var all []*module
	for _, m := range known {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return all, nil
}

// linked returns the modules with a package in the program, on any platform that it is
// shipped for, and Go itself.
func linked(root, program string) ([]*module, error) {
	i := slices.IndexFunc(programs, func(p struct{ name, cgo string }) bool { return p.name == program })
	if i < 0 {
		return nil, fmt.Errorf("%s is not a shipped program", program)
	}
	env, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	goroot, version, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	known := map[string]*module{"Go": {Path: "Go", Version: version, Dir: goroot, dirs: []string{goroot}}}
	for _, arch := range []string{"amd64", "arm64"} {
		list := exec.Command("go", "list", "-deps", "-json=Dir,Module", ".")
		list.Dir, list.Stderr = filepath.Join(root, "cmd", program), os.Stderr
		list.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED="+programs[i].cgo)
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list of %s: %w", program, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Dir    string
				Module *module
			}
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			// What is replaced by a folder is part of this project.
			if m := p.Module; m != nil && !m.Main && m.Replace == nil {
				if known[m.Path] == nil {
					known[m.Path] = m
				}
				known[m.Path].has(p.Dir)
			}
		}
	}
	var out []*module
	var errs []error
	for _, m := range known {
		errs = append(errs, m.identify())
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return out, errors.Join(errs...)
}

var textFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-](txt|md|\w+))?$`)

// has adds the folder of a linked package and those above it.
func (m *module) has(dir string) {
	for ; len(dir) >= len(m.Dir) && !slices.Contains(m.dirs, dir); dir = filepath.Dir(dir) {
		m.dirs = append(m.dirs, dir)
	}
}

// files returns the files with licences and notices, relative to the module.
func (m *module) files() ([]string, error) {
	slices.Sort(m.dirs)
	var names []string
	for _, dir := range m.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && textFile.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
				names = append(names, strings.TrimPrefix(filepath.Join(dir, e.Name()), m.Dir+"/"))
			}
		}
	}
	return names, nil
}

// identify finds the licences of a module.
func (m *module) identify() error {
	names, err := m.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(m.Dir, name))
		if err != nil {
			return err
		}
		for _, found := range licensecheck.Scan(text).Match {
			if !found.IsURL && !slices.Contains(m.licences, found.ID) {
				m.licences = append(m.licences, found.ID)
			}
		}
	}
	slices.Sort(m.licences)
	m.licences = slices.DeleteFunc(m.licences, func(id string) bool { return id == "GooglePatentsFile" || id == "GooglePatentClause" })
	for _, id := range m.licences {
		if !slices.Contains(accepted, id) {
			return fmt.Errorf("%s %s: the licence %s is not among %s", m.Path, m.Version, id, strings.Join(accepted, ", "))
		}
	}
	if len(m.licences) == 0 {
		return fmt.Errorf("%s %s: no known licence in %v", m.Path, m.Version, names)
	}
	return nil
}

// page is docs/licenses.md.
func page(list []*module) []byte {
	var b bytes.Buffer
	b.WriteString(`# Licences of linked modules

<!-- Generated by tools/licenses; run make generate. -->

The programs link these Go modules, on amd64 or arm64. Their licence texts and notices are in ` + "`/usr/share/doc/PROGRAM/third-party-licenses`" + ` of the images and of the packages, and in ` + "`PROGRAM.third-party-licenses`" + ` beside the programs of ` + "`make dist`" + `. The exporter also loads the system's NVML and DCGM, of which nothing is shipped.

| module | version | licence | programs |
|---|---|---|---|
`)
	for _, m := range list {
		if m.Path == "Go" {
			m.Version = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.licences, ", "), strings.Join(m.in, ", "))
	}
	return b.Bytes()
}

// printTexts prints each text once, below the names of the modules that have it.
func printTexts(w io.Writer, list []*module) error {
	var order []string
	of := map[string][]string{}
	for _, m := range list {
		names, err := m.files()
		if err != nil {
			return err
		}
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(m.Dir, name))
			if err != nil {
				return err
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if of[text] == nil {
				order = append(order, text)
			}
			of[text] = append(of[text], fmt.Sprintf("%s %s: %s", m.Path, m.Version, name))
		}
	}
	for _, text := range order {
		if _, err := fmt.Fprintf(w, "%s\n%s\n\n%s\n\n", strings.Repeat("=", 72), strings.Join(of[text], "\n"), text); err != nil {
			return err
		}
	}
	return nil
}
