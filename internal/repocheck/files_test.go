package repocheck

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the path of the repository from this package.
const root = "../.."

// tracked returns the files of the repository, from git or, outside a checkout,
// from the directory tree.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	var names []string
	if err == nil {
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
				names = append(names, name)
			}
		}
		return names
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if d.IsDir() && (name == "bin" || name == ".cache" || name == ".git") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// isText reports whether the file is text of the project: neither a capture nor
// test data with unusual content.
func isText(name string, data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsRune(data, 0) &&
		!strings.HasPrefix(name, "fixtures/captures/") && !strings.HasPrefix(name, "fixtures/trees/") &&
		!strings.HasPrefix(name, "fixtures/kernel-log/") && !strings.Contains(name, "/testdata/") &&
		!strings.HasPrefix(filepath.Base(name), "LICENSE")
}

var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	machine    = regexp.MustCompile(`(^|[\s"'` + "`" + `(=:])/(ro` + `ot|wo` + `rk|home/[a-z])[/a-z]*`)
)

// nodeHome is the path of the driver on the nodes of a well-known cloud.
const nodeHome = "/home/kubernetes/"

// suspicious are the words of these expressions. Most files have none of them, and
// looking for words costs a fraction of matching every line.
var suspicious = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "/ro" + "ot", "/wo" + "rk", "/home/"}

// faults returns the mistakes in the text of a file.
func faults(data []byte) []string {
	var out []string
	suspect := slices.ContainsFunc(suspicious, func(word string) bool { return bytes.Contains(data, []byte(word)) })
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.TrimRight(line, " \t\r") != line:
			out = append(out, at(i, "space at the end of the line"))
		case suspect && unfinished.MatchString(line):
			out = append(out, at(i, "unfinished: "+unfinished.FindString(line)))
		case suspect && machine.MatchString(line) && !strings.Contains(line, nodeHome):
			out = append(out, at(i, "path of a single machine: "+machine.FindString(line)))
		}
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		out = append(out, "no end of line at the end")
	}
	return out
}

// largest is the limit of a tracked file, in bytes: the largest golden page fits.
const largest = 2 << 20

func at(i int, text string) string { return "line " + strconv.Itoa(i+1) + ": " + text }

func TestFiles(t *testing.T) {
	for _, name := range tracked(t) {
		data := read(t, name)
		if bytes.HasPrefix(data, []byte("\x7fELF")) || len(data) > largest {
			t.Errorf("%s: a built program, or larger than %d bytes", name, largest)
		}
		if !isText(name, data) {
			continue
		}
		for _, f := range faults(data) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	bad := "a \nTO" + "DO: b\nsee /ro" + "ot/x\ncd /wo" + "rk/main\n# FIX" + "ME\nno end"
	if got := faults([]byte(bad)); len(got) != 6 {
		t.Errorf("%q", got)
	}
	if got := faults([]byte("a toDo of /sys/class and the rootfs, https://x.example/home\n")); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestLicences: captures are accompanied by their licence.
func TestLicences(t *testing.T) {
	dirs := map[string]bool{}
	licensed := map[string]bool{}
	for _, name := range tracked(t) {
		dir, base := filepath.Dir(name), filepath.Base(name)
		switch {
		case strings.HasPrefix(base, "LICENSE"):
			licensed[dir] = true
		case strings.HasPrefix(dir, "fixtures/captures"):
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		if !licensed[dir] {
			t.Errorf("%s has captures and no LICENSE", dir)
		}
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "VERSION"} {
		if len(read(t, name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func TestNoKubernetesClient(t *testing.T) {
	if bytes.Contains(read(t, "go.mod"), []byte("k8s.io/client-go ")) {
		t.Error("go.mod requires client-go: no node agent of ours talks to the API server")
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)(?: "[^"]*")?\)`)

// deadLinks returns the links of a Markdown text with a missing target. exists
// reports whether a path exists, anchors returns the headings of a file.
func deadLinks(name, text string, exists func(string) bool, anchors func(string) map[string]bool) []string {
	var dead []string
	for _, m := range link.FindAllStringSubmatch(withoutCode(text), -1) {
		target, fragment, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		to := name
		if target != "" {
			to = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
		}
		if !exists(to) || fragment != "" && !anchors(to)[fragment] {
			dead = append(dead, m[1])
		}
	}
	return dead
}

var fence = regexp.MustCompile("(?ms)^ *```.*?^ *```")

func withoutCode(text string) string { return fence.ReplaceAllString(text, "") }

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorsOf returns the fragments of a Markdown text.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for line := range strings.Lines(withoutCode(text)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			a := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors[strings.ReplaceAll(a, " ", "-")] = true
		}
	}
	return anchors
}

func TestLinks(t *testing.T) {
	exists := func(p string) bool {
		_, err := os.Stat(filepath.Join(root, p))
		return err == nil
	}
	anchors := func(p string) map[string]bool { return anchorsOf(string(read(t, p))) }
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, l := range deadLinks(name, string(read(t, name)), exists, anchors) {
			t.Errorf("%s: link to %s leads nowhere", name, l)
		}
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	text := "# A title, here\n[a](b.md) [c](../d.md#x) [e](https://f.example) [g](#a-title-here) [h](#gone)\n```\n[i](j)\n```\n"
	exists := func(p string) bool { return p == "docs/x.md" || p == "d.md" }
	anchors := func(p string) map[string]bool {
		if p == "docs/x.md" {
			return anchorsOf(text)
		}
		return map[string]bool{"x": true}
	}
	got := deadLinks("docs/x.md", text, exists, anchors)
	if strings.Join(got, " ") != "b.md #gone" {
		t.Errorf("%q", got)
	}
}
