package repocheck

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the path of the repository from this package.
const root = "../.."

// tracked returns the files of the repository. Outside a checkout the test is skipped.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip(err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
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

// suspicious are the words of these expressions. Most files have no such word, and
// looking for words costs a fraction of matching every line.
var suspicious = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "/ro" + "ot", "/wo" + "rk", "/home/"}

// largest is the limit of a tracked file, in bytes: the largest golden page fits.
const largest = 2 << 20

func TestFiles(t *testing.T) {
	for _, name := range tracked(t) {
		data := read(t, name)
		if bytes.HasPrefix(data, []byte("\x7fELF")) || len(data) > largest {
			t.Errorf("%s: a built program, or larger than %d bytes", name, largest)
		}
		if !isText(name, data) {
			continue
		}
		suspect := slices.ContainsFunc(suspicious, func(word string) bool { return bytes.Contains(data, []byte(word)) })
		for i, line := range strings.Split(string(data), "\n") {
			switch {
			case strings.TrimRight(line, " \t\r") != line:
				t.Errorf("%s:%d: space at the end of the line", name, i+1)
			case suspect && unfinished.MatchString(line):
				t.Errorf("%s:%d: unfinished: %s", name, i+1, unfinished.FindString(line))
			case suspect && machine.MatchString(line) && !strings.Contains(line, nodeHome):
				t.Errorf("%s:%d: path of a single machine: %s", name, i+1, machine.FindString(line))
			}
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			t.Errorf("%s: no end of line at the end", name)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)(?: "[^"]*")?\)`)

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

// TestLinks: the links of Markdown files have a target.
func TestLinks(t *testing.T) {
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(withoutCode(string(read(t, name))), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := name
			if target != "" {
				to = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil || fragment != "" && !anchorsOf(string(read(t, to)))[fragment] {
				t.Errorf("%s: link to %s leads nowhere", name, m[1])
			}
		}
	}
}
