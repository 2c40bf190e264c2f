//go:build cgo

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/goleak"
)

// One process can load one library, and go-nvml never unloads it: every case
// runs in a child, which is this test binary with these variables.
const (
	childVar   = "ACCEL_SIM_TEST_CHILD"
	libraryVar = "ACCEL_SIM_TEST_LIBRARY"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		out, err := children[name](nvml.New(nvml.WithLibraryPath(os.Getenv(libraryVar))))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
			os.Exit(4)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if builtDir != "" {
		os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

var (
	builtDir string
	build    = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "accel-sim-test-")
		if err != nil {
			return "", err
		}
		builtDir = dir
		out, err := exec.Command("make", "-s", "-C", "../../fixtures/nvml", "OUT="+dir).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("warning")) {
			return "", fmt.Errorf("make: %w\n%s", err, out)
		}
		return filepath.Join(dir, "libnvidia-ml.so.1"), nil
	})
)

func library(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc to build the simulated library with")
	}
	lib, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// setUp writes the state of a scenario, frozen at 100 s, and edits it by faults.
func setUp(t testing.TB, scenario string, faults ...[]string) (state, lib string) {
	t.Helper()
	lib = library(t)
	sc, err := LoadScenario(fixtures, scenario)
	if err != nil {
		t.Fatal(err)
	}
	at := 100.0
	s, err := sc.Compile(fixtures, Options{Frozen: &at})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if err := s.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	state = filepath.Join(t.TempDir(), "state")
	if err := s.Install(state); err != nil {
		t.Fatal(err)
	}
	if len(sc.Missing) > 0 {
		patched := filepath.Join(filepath.Dir(state), "libnvidia-ml.so.1")
		if err := WithoutSymbols(lib, patched, sc.Missing); err != nil {
			t.Fatal(err)
		}
		lib = patched
	}
	return state, lib
}

func childCommand(t testing.TB, name, state, lib string) *exec.Cmd {
	t.Helper()
	if children[name] == nil {
		t.Fatalf("no child %q", name)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVar+"="+name, libraryVar+"="+lib, "ACCEL_SIM_STATE="+state,
		"GORACE=atexit_sleep_ms=0")
	return cmd
}

// runChild runs a child and returns its result.
func runChild(t testing.TB, name, state, lib string) map[string]any {
	t.Helper()
	cmd := childCommand(t, name, state, lib)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	if err != nil {
		t.Fatalf("child %s: %v\n%s", name, err, stderr.String())
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("child %s printed %q: %v", name, data, err)
	}
	return out
}

// signalOf is the signal that ended a child, 0 for none.
func signalOf(err error) syscall.Signal {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}

func check(ret nvml.Return, what string) error {
	if ret != nvml.SUCCESS {
		return fmt.Errorf("%s: %s", what, nvml.ErrorString(ret))
	}
	return nil
}
