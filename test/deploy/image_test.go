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

// TestDockerfile: the image runs as a user of its own, has what the build made
// and no more, and can be pinned by digest.
func TestDockerfile(t *testing.T) {
	all, args := stages(t)
	if len(all) != 2 || len(args) != 2 {
		t.Fatalf("%d stages, %d arguments before them", len(all), len(args))
	}
	for i, stage := range all {
		if name := args[i].Args[0].Key; stage.BaseName != "${"+name+"}" {
			t.Errorf("stage %d is from %s and not from an argument", i, stage.BaseName)
		}
		if strings.HasSuffix(args[i].Args[0].ValueString(), ":latest") {
			t.Errorf("stage %d is from whatever is the latest", i)
		}
	}
	user, programs := "", []string{}
	for _, c := range all[1].Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.CopyCommand:
			if c.From == "build" {
				programs = c.SourcePaths
			}
		case *instructions.RunCommand:
			t.Error("something runs in the image, which has no shell")
		}
	}
	// A number: a kubelet cannot tell whether a name is root.
	if user != "65532:65532" {
		t.Errorf("user is %q", user)
	}
	if want := []string{"/out/accel-exporter", "/out/accel-rules"}; !slices.Equal(programs, want) {
		t.Errorf("programs are %q, want %q", programs, want)
	}
	goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(read(t, "go.mod"))[1]
	if image := args[0].Args[0].ValueString(); !strings.HasPrefix(image, "golang:"+string(goVersion)+"-") {
		t.Errorf("built by %s, go.mod says %s", image, goVersion)
	}
}

// TestContext: what the builder is sent suffices to make the programs, and
// they are the same bytes in whatever folder they are made.
func TestContext(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, name := range sent(t) {
		data := read(t, name)
		for _, dir := range []string{one, two} {
			to := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	here, there := dist(t, one), dist(t, two)
	for _, program := range []string{"accel-exporter", "accel-rules"} {
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
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
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
