//go:build cgo

package sim

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/golden"
)

// same compares the result of a child with testdata/NAME.json.
func same(t *testing.T, name string, got map[string]any) {
	t.Helper()
	file := filepath.Join("testdata", name+".json")
	data, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, file, string(data)+"\n")
}

func TestThroughGoNVML(t *testing.T) {
	for _, tc := range []struct {
		child, scenario string
		faults          [][]string
	}{
		{child: "values", scenario: "h100-8"},
		{child: "sharing", scenario: "h100-8", faults: [][]string{{"process-start", "8", "5"}}},
		{child: "mig", scenario: "h100-8"},
		{child: "profiles", scenario: "a100"},
		{child: "events", scenario: "h100-8"},
		{child: "system", scenario: "h100-8"},
		{child: "gpm", scenario: "h100-8"},
		{child: "fields", scenario: "h100-8"},
		{child: "fields", scenario: "b200-8"},
		{child: "faults", scenario: "h100-8"},
		{child: "hang", scenario: "h100-8"},
		{child: "init-hang", scenario: "h100-8", faults: [][]string{{"init-hang"}}},
		{child: "reload", scenario: "h100-8"},
		{child: "counters", scenario: "h100-8"},
		{child: "lookup", scenario: "old-driver"},
		{child: "lookups", scenario: "h100-8"},
		{child: "clear", scenario: "h100-8"},
		{child: "init", scenario: "driver-mismatch"},
		{child: "init", scenario: "no-driver"},
	} {
		name := tc.child + "-" + tc.scenario
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, lib := setUp(t, tc.scenario, tc.faults...)
			same(t, name, runChild(t, tc.child, state, lib))
		})
	}
}

func TestNoStateIsNoDriver(t *testing.T) {
	same(t, "init-no-driver", runChild(t, "init", t.TempDir()+"/none", library(t)))
}

// One-shot faults end one process, and the next one runs.
func TestDeath(t *testing.T) {
	for _, tc := range []struct {
		fault  []string
		signal syscall.Signal
		code   int
	}{
		{[]string{"crash"}, syscall.SIGSEGV, -1},
		{[]string{"kill", "0"}, syscall.SIGKILL, -1},
		{[]string{"exit", "--code=127", "--call=nvmlDeviceGetName"}, 0, 127},
	} {
		t.Run(tc.fault[0], func(t *testing.T) {
			t.Parallel()
			state, lib := setUp(t, "h100-8", tc.fault)
			cmd := childCommand(t, "values", state, lib)
			err := cmd.Run()
			if s := signalOf(err); s != tc.signal || cmd.ProcessState.ExitCode() != tc.code {
				t.Errorf("child ended by signal %v, status %d (%v); want signal %v, status %d", s, cmd.ProcessState.ExitCode(), err, tc.signal, tc.code)
			}
			runChild(t, "values", state, lib)
		})
	}
}

func TestMissingSymbolEndsTheProcess(t *testing.T) {
	state, lib := setUp(t, "old-driver")
	cmd := childCommand(t, "unguarded", state, lib)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 127 || !bytes.Contains(stderr.Bytes(), []byte("nvmlDeviceGetMarginTemperature")) {
		t.Errorf("child ended with %v and %q; want status 127 and the symbol's name", err, stderr.String())
	}
}

// A library with a wrong section table is an error.
func TestWithoutSymbolsBounds(t *testing.T) {
	lib := library(t)
	data, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	want := f.Section(".dynstr").Offset
	for _, size := range []uint64{uint64(len(data)), 1 << 63, ^uint64(0)} {
		bad := bytes.Clone(data)
		for i := range f.Sections {
			h := bad[int(binary.LittleEndian.Uint64(bad[0x28:]))+64*i:]
			if binary.LittleEndian.Uint64(h[24:]) == want {
				binary.LittleEndian.PutUint64(h[32:], size)
			}
		}
		path := filepath.Join(t.TempDir(), "lib.so")
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := WithoutSymbols(path, path+".out", []string{"nvmlInit"}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

// The same moment gives the same answers in every process.
func TestFrozenClock(t *testing.T) {
	state, lib := setUp(t, "h100-8")
	first := runChild(t, "gpm", state, lib)
	if diff := cmp.Diff(first, runChild(t, "gpm", state, lib)); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

func TestSweep(t *testing.T) {
	names, err := ScenarioNames(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, _ := setUp(t, name)
			out := runChild(t, "sweep", state, library(t))
			if odd, ok := out["odd"]; ok && odd != 0.0 {
				t.Errorf("%v answers are no nvmlReturn_t", odd)
			}
			t.Log(fmt.Sprint(out))
		})
	}
}
