package repocheck

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofTheProcess are calls that read the environment or end the process.
var ofTheProcess = regexp.MustCompile(`\bos\.(Exit|Getenv|LookupEnv|Environ|Setenv)\(`)

// commands are the programs of the repository outside cmd, and harnesses that set the
// environment of the programs they start.
var commands = []string{"internal/gen/...", "internal/sim", "internal/sim/simtest", "test/...", "tools/..."}

// TestProcessBelongsToCmd: a package that reads the environment or ends the process can
// be neither tested nor reused.
func TestProcessBelongsToCmd(t *testing.T) {
	for _, name := range tracked(t) {
		dir := filepath.ToSlash(filepath.Dir(name))
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(dir, "cmd/") || matchesAny(commands, dir) {
			continue
		}
		if call := ofTheProcess.Find(read(t, name)); call != nil {
			t.Errorf("%s calls %s): only cmd may", name, call)
		}
	}
}
