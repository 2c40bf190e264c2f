//go:build cgo

package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

const (
	libraryVar  = "ACCEL_SIM_TEST_LIBRARY"
	libraryName = "libnvidia-ml.so.1"
)

func TestMain(m *testing.M) {
	program := programs[simtest.Child()]
	if program == nil {
		simtest.Main(m)
	}
	out := map[string]any{}
	program(nvml.New(nvml.WithLibraryPath(os.Getenv(libraryVar))), out)
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}

// setUp writes the state of a scenario, frozen at 100 s, and edits it by faults.
// It returns the state file and the library.
func setUp(t *testing.T, scenario string, faults ...[]string) (state, lib string) {
	t.Helper()
	at := 100.0
	state = filepath.Join(t.TempDir(), "state")
	sc := simtest.Install(t, state, scenario, sim.Options{Frozen: &at}, faults...)
	return state, filepath.Join(simtest.WithoutSymbols(t, simtest.Libraries(t, "nvml"), libraryName, sc.Missing), libraryName)
}

// runProgram runs a program, whose errors are in stderr, and returns its output.
func runProgram(t *testing.T, name, state, lib string) (cmd *exec.Cmd, stdout, stderr []byte) {
	t.Helper()
	cmd = simtest.Command(t.Context(), name, state, nil, libraryVar+"="+lib)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	stdout, _ = cmd.Output()
	return cmd, stdout, errors.Bytes()
}

// result returns what a program reports.
func result(t *testing.T, name, state, lib string) (out map[string]any) {
	t.Helper()
	cmd, stdout, stderr := runProgram(t, name, state, lib)
	if err := json.Unmarshal(stdout, &out); err != nil || !cmd.ProcessState.Success() {
		t.Fatalf("%s: %v: %v\n%s%s", name, cmd.ProcessState, err, stdout, stderr)
	}
	return out
}

// same compares a result with testdata/NAME.json.
func same(t *testing.T, name string, got map[string]any) {
	t.Helper()
	data, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", name+".json"), string(data)+"\n")
}

func TestThroughGoNVML(t *testing.T) {
	for _, tc := range []struct {
		program, scenario string
		faults            [][]string
	}{
		{program: "faults", scenario: "h100-8"},
		{program: "hang", scenario: "h100-8"},
		{program: "counters", scenario: "h100-8"},
	} {
		name := tc.program + "-" + tc.scenario
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, lib := setUp(t, tc.scenario, tc.faults...)
			same(t, name, result(t, tc.program, state, lib))
		})
	}
}

func TestNoStateIsNoDriver(t *testing.T) {
	_, lib := setUp(t, "no-driver")
	if out := result(t, "init", t.TempDir()+"/none", lib); out["init"] != float64(nvml.ERROR_DRIVER_NOT_LOADED) {
		t.Errorf("init returned %v", out["init"])
	}
}

// One-shot faults end one process, and the next one runs. A symbol that is
// missing ends each.
func TestDeath(t *testing.T) {
	for _, tc := range []struct {
		program, scenario string
		faults            [][]string
		signal            syscall.Signal
		code              int
		stderr            string
	}{
		{program: "name", scenario: "h100-8", faults: [][]string{{"crash"}}, signal: syscall.SIGSEGV, code: -1},
		{program: "name", scenario: "h100-8", faults: [][]string{{"kill", "0"}}, signal: syscall.SIGKILL, code: -1},
		{program: "name", scenario: "h100-8", faults: [][]string{{"exit", "--code=127", "--call=nvmlDeviceGetName"}}, signal: -1, code: 127},
		{program: "unguarded", scenario: "old-driver", signal: -1, code: 127, stderr: "nvmlDeviceGetMarginTemperature"},
	} {
		t.Run(fmt.Sprint(tc.program, tc.faults), func(t *testing.T) {
			t.Parallel()
			state, lib := setUp(t, tc.scenario, tc.faults...)
			cmd, _, stderr := runProgram(t, tc.program, state, lib)
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || status.Signal() != tc.signal || cmd.ProcessState.ExitCode() != tc.code || !bytes.Contains(stderr, []byte(tc.stderr)) {
				t.Errorf("it ended by %v and wrote %q; want signal %v, status %d and %q", cmd.ProcessState, stderr, tc.signal, tc.code, tc.stderr)
			}
			if tc.faults != nil {
				result(t, tc.program, state, lib)
			}
		})
	}
}

func TestSweep(t *testing.T) {
	for _, name := range sim.ScenarioNames(os.DirFS("../../fixtures")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, _ := setUp(t, name)
			out := result(t, "sweep", state, filepath.Join(simtest.Libraries(t, "nvml"), libraryName))
			if odd, ok := out["odd"]; ok && odd != 0.0 {
				t.Errorf("%v answers are no nvmlReturn_t", odd)
			}
			t.Log(fmt.Sprint(out))
		})
	}
}
