package deploy

import (
	"bytes"
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

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stages reads the Dockerfile as the builder does.
func stages(t *testing.T) ([]instructions.Stage, []instructions.ArgCommand) {
	t.Helper()
	file, err := parser.Parse(bytes.NewReader(read(t, "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Warnings) > 0 {
		t.Errorf("%v", file.Warnings)
	}
	stages, args, err := instructions.Parse(file.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages, args
}

// images are the stages that are images, with the stage that makes the
// programs of each.
var images = map[string]struct {
	build    string
	programs []string
}{
	"exporter":   {"build", []string{"/out/accel-exporter"}},
	"remediator": {"build-remediator", []string{"/out/accel-remediator"}},
}

// TestDockerfile: each image runs as its own user, has the files of its build
// and no more, and can be pinned by digest.
func TestDockerfile(t *testing.T) {
	all, args := stages(t)
	bases := map[string]string{}
	for _, a := range args {
		bases["${"+a.Args[0].Key+"}"] = a.Args[0].ValueString()
	}
	for _, stage := range all {
		if base := bases[stage.BaseName]; base == "" || strings.HasSuffix(base, ":latest") {
			t.Errorf("%s is from %q, %q", stage.Name, stage.BaseName, base)
		}
		if want, ok := images[stage.Name]; ok {
			image(t, &stage, want.build, want.programs)
		}
	}
	if last := all[len(all)-1].Name; len(all) != 4 || last != "exporter" {
		t.Errorf("%d stages; the image that is built where none is named is %q", len(all), last)
	}
	goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(read(t, "go.mod"))[1]
	if image := bases["${GO_IMAGE}"]; !strings.HasPrefix(image, "golang:"+string(goVersion)+"-") {
		t.Errorf("built by %s, go.mod has %s", image, goVersion)
	}
}

func image(t *testing.T, stage *instructions.Stage, build string, want []string) {
	t.Helper()
	user, programs, licences := "", []string{}, false
	for _, c := range stage.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.CopyCommand:
			if c.From != "" && c.From != build {
				t.Errorf("%s has something from %s", stage.Name, c.From)
			}
			switch {
			case c.DestPath == "/usr/share/doc/accel-"+stage.Name+"/third-party-licenses":
				licences = true
			case c.From == build:
				programs = c.SourcePaths
			}
		case *instructions.RunCommand:
			t.Errorf("something runs in %s, which has no shell", stage.Name)
		}
	}
	// A number: a kubelet cannot check whether a name is root.
	if user != "65532:65532" {
		t.Errorf("%s: user is %q", stage.Name, user)
	}
	if !licences {
		t.Errorf("%s has no licences of the linked modules", stage.Name)
	}
	if !slices.Equal(programs, want) {
		t.Errorf("%s: programs are %q, want %q", stage.Name, programs, want)
	}
}

// TestContext: what the builder is sent suffices to make the programs, and
// they are the same bytes in whatever folder they are made.
func TestContext(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, name := range sent(t) {
		data := read(t, name)
		for _, dir := range []string{one, two} {
			write(t, filepath.Join(dir, name), data)
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
