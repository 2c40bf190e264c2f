// Package simtest runs tests against the simulated libraries, each in its own
// process: a process loads one library of a name, and the loader uses its
// environment. It also gives tests the trees of fixtures/trees.
package simtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

const (
	// childVar has the name of the test that a process runs.
	childVar = "ACCEL_SIM_TEST_CHILD"
	// StateVar has the file with the state of the simulated machine.
	StateVar = "ACCEL_SIM_STATE"
)

// Child is the name of the test, or of another Command, that this process runs;
// empty in the process of the test binary.
func Child() string { return os.Getenv(childVar) }

// Main is the TestMain of a package whose tests use Run. It reports leaked
// goroutines, and removes what was built.
func Main(m *testing.M) {
	if Child() != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		Clean()
		os.Exit(code)
	}))
}

// Command returns this test binary as the child with a name, with a state and
// further variables. It is killed when ctx is done.
func Command(ctx context.Context, child, state string, args []string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), childVar+"="+child, StateVar+"="+state, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// Run runs a test or benchmark in a child and returns its output. The child
// must pass.
func Run(t testing.TB, state string, env ...string) string {
	t.Helper()
	args := []string{"-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$", "-test.v"}
	_, benchmark := t.(*testing.B)
	if benchmark {
		args = []string{"-test.run=^$", "-test.bench=^" + t.Name() + "$", "-test.benchmem", "-test.cpu=1"}
	}
	child := Command(context.Background(), t.Name(), state, args, env...)
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	if err := child.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if testing.Verbose() || benchmark {
		t.Logf("\n%s", out.String())
	}
	return out.String()
}

// Install writes the state of a scenario, with faults, to a file, and returns
// the scenario.
func Install(t testing.TB, path, scenario string, o sim.Options, faults ...[]string) *sim.Scenario {
	t.Helper()
	files := os.DirFS(fixtures(t))
	sc, err := sim.LoadScenario(files, scenario)
	if err != nil {
		t.Fatal(err)
	}
	state, err := sc.Compile(files, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if err := state.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.Install(path); err != nil {
		t.Fatal(err)
	}
	return sc
}

var (
	building sync.Mutex
	built    string               // the folder
	made     = map[string]error{} // by library
)

// WithoutSymbols returns a folder with the library, a file of dir, without the
// functions that are missing.
func WithoutSymbols(t testing.TB, dir, file string, missing []string) string {
	t.Helper()
	if len(missing) == 0 {
		return dir
	}
	older := t.TempDir()
	if err := sim.WithoutSymbols(filepath.Join(dir, file), filepath.Join(older, file), missing); err != nil {
		t.Fatal(err)
	}
	return older
}

// Libraries builds simulated libraries, nvml or dcgm, once each, and returns
// their folder. A compiler warning is an error.
func Libraries(t testing.TB, names ...string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	if built == "" {
		dir, err := os.MkdirTemp("", "accel-sim-test-")
		if err != nil {
			t.Fatal(err)
		}
		built = dir
	}
	for _, name := range names {
		err, known := made[name]
		if !known {
			err = build(fixtures(t), name)
			made[name] = err
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return built
}

func build(fixtures, name string) error {
	out, err := exec.Command("make", "-s", "-C", fixtures+"/"+name, "OUT="+built).CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("warning")) {
		err = errors.New("warnings")
	}
	if err != nil {
		return fmt.Errorf("make %s: %w\n%s", name, err, out)
	}
	return nil
}

// Clean removes what was built.
func Clean() {
	if built != "" {
		_ = os.RemoveAll(built)
	}
}
