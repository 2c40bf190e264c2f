package deploy

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDockerfile: each image runs as its own user, has the licences of its modules and no
// shell, and is made by the Go of go.mod on bases that can be pinned by digest.
func TestDockerfile(t *testing.T) {
	text := string(read(t, "Dockerfile"))
	goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(read(t, "go.mod"))[1]
	if !strings.Contains(text, "ARG GO_IMAGE=golang:"+string(goVersion)+"-") || strings.Contains(text, ":latest") {
		t.Errorf("not made by Go %s, or on a base without a version", goVersion)
	}
	stages := strings.Split(text, "\nFROM ")[1:]
	for _, stage := range stages {
		base, body, _ := strings.Cut(stage, "\n")
		_, name, _ := strings.Cut(base, " AS ")
		if !strings.Contains(base, "${") {
			t.Errorf("the base of %s has no argument", name)
		}
		if strings.HasPrefix(name, "build") {
			continue
		}
		for _, line := range []string{
			"USER 65532:65532", // a number: a kubelet cannot check whether a name is root
			"COPY --from=build.* /out/accel-" + name + " /usr/local/bin/",
			"COPY --from=build.* /usr/share/doc/accel-" + name + "/third-party-licenses",
		} {
			if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(body) {
				t.Errorf("%s lacks %s", name, line)
			}
		}
		if strings.Contains(body, "\nRUN ") {
			t.Errorf("something runs in %s, which has no shell", name)
		}
	}
	if last := stages[len(stages)-1]; len(stages) != 4 || !strings.Contains(last, " AS exporter\n") {
		t.Errorf("%d stages; the last stage, which is built by default, is not the exporter", len(stages))
	}
}

// TestContext: what the builder is sent suffices to make the programs, and
// they are the same bytes in whatever folder they are made.
func TestContext(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, name := range sent(t) {
		data := read(t, name)
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{one, two} {
			write(t, filepath.Join(dir, name), data)
			if err := os.Chmod(filepath.Join(dir, name), info.Mode()); err != nil {
				t.Fatal(err)
			}
		}
	}
	here, there := dist(t, one), dist(t, two)
	for _, program := range []string{"accel-exporter", "accel-remediator"} {
		if sum(t, filepath.Join(here, program)) != sum(t, filepath.Join(there, program)) {
			t.Errorf("%s differs with the folder that it is built in", program)
		}
	}
}

// dist makes the programs as the Dockerfile does.
func dist(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	cmd := exec.Command("make", "-s", "dist", "DIST="+out, "REVISION=test")
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") }), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return out
}

func sum(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// sent are the files that .dockerignore, a list of exceptions, leaves.
func sent(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(string(read(t, ".dockerignore"))) {
		line = strings.TrimSpace(line)
		if line == "" || line == "*" || strings.HasPrefix(line, "#") {
			continue
		}
		top, ok := strings.CutPrefix(line, "!")
		if !ok || strings.ContainsAny(top, "*/") {
			t.Fatalf(".dockerignore: %q is no exception for a file or folder", line)
		}
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				names = append(names, strings.TrimPrefix(path, root+"/"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
