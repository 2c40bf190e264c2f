package dcgm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// patience is how long a test waits for what must come, on however slow a machine.
const patience = 3 * time.Minute

// A process loads one libdcgm, by its name alone, and go-dcgm has one engine in
// it: every case runs in a child, which is this test binary with this variable set.
const childVar = "ACCEL_SIM_TEST_CHILD"

// children are what a child may do: an error fails the test.
var children = map[string]func() error{
	"start":       startLikeTheExporter,
	"agree":       agree,
	"mig":         instances,
	"lost":        lostGPU,
	"xid":         xid,
	"policy":      policies,
	"health":      health,
	"reconnect":   reconnect,
	"absent":      engineAbsent,
	"limits":      limits,
	"leak":        leak,
	"profiling":   profiling,
	"blanks":      blanks,
	"versions":    versions,
	"hang":        hang,
	"driver-hang": driverHang,
	"switches":    switches,
	"cpus":        cpus,
	"no-driver":   noDriver,
	"detach":      detach,
	"inject":      injectValue,
	"since":       valuesSince,
	"accounts":    accounts,
	"unguarded":   callOnce,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		if err := children[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
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
		dir, err := os.MkdirTemp("", "accel-dcgm-test-")
		if err != nil {
			return "", err
		}
		builtDir = dir
		for _, library := range []string{"nvml", "dcgm"} {
			out, err := exec.Command("make", "-s", "-C", "../../fixtures/"+library, "OUT="+dir).CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("warning")) {
				return "", fmt.Errorf("make: %w\n%s", err, out)
			}
		}
		return dir, nil
	})
)

// libraries is the folder with both simulated libraries.
func libraries(t *testing.T) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// setUp writes the state of a scenario, with its clock stopped at 100 s where
// frozen, and edits it by faults.
func setUp(t *testing.T, scenario string, frozen bool, faults ...string) (state string) {
	t.Helper()
	fixtures := os.DirFS("../../fixtures")
	sc, err := sim.LoadScenario(fixtures, scenario)
	if err != nil {
		t.Fatal(err)
	}
	o := sim.Options{}
	if at := 100.0; frozen {
		o.Frozen = &at
	}
	s, err := sc.Compile(fixtures, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if err := s.Inject(strings.Fields(f)); err != nil {
			t.Fatal(err)
		}
	}
	state = filepath.Join(t.TempDir(), "state")
	if err := s.Install(state); err != nil {
		t.Fatal(err)
	}
	return state
}

// command is the child; its libraries are in the folders.
func command(t *testing.T, name, state string, folders ...string) *exec.Cmd {
	t.Helper()
	if children[name] == nil {
		t.Fatalf("no child %q", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVar+"="+name, "ACCEL_SIM_STATE="+state, "LD_LIBRARY_PATH="+strings.Join(folders, ":"),
		"GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestThroughGoDCGM(t *testing.T) {
	for _, tc := range []struct {
		child, scenario string
		frozen          bool
		faults          []string
	}{
		{child: "start", scenario: "h100-8"},
		{child: "start", scenario: "h100-mig-16x7"},
		{child: "start", scenario: "b200-8"},
		{child: "start", scenario: "a100"},
		{child: "start", scenario: "t4"},
		{child: "start", scenario: "one-lost"},
		{child: "start", scenario: "no-gpu"},
		{child: "agree", scenario: "h100-8", frozen: true},
		{child: "agree", scenario: "b200-8", frozen: true},
		{child: "agree", scenario: "a100", frozen: true},
		{child: "agree", scenario: "l40s", frozen: true},
		{child: "agree", scenario: "t4", frozen: true},
		{child: "agree", scenario: "garbage", frozen: true},
		{child: "mig", scenario: "h100-8", frozen: true},
		{child: "lost", scenario: "h100-8"},
		{child: "xid", scenario: "h100-8"},
		{child: "policy", scenario: "h100-8"},
		{child: "health", scenario: "h100-8", frozen: true},
		{child: "reconnect", scenario: "h100-8"},
		{child: "absent", scenario: "h100-8", faults: []string{"dcgm-engine down"}},
		{child: "limits", scenario: "h100-8"},
		{child: "leak", scenario: "h100-8"},
		{child: "profiling", scenario: "h100-8"},
		{child: "blanks", scenario: "h100-8"},
		{child: "versions", scenario: "h100-8"},
		{child: "hang", scenario: "h100-8"},
		{child: "driver-hang", scenario: "h100-8"},
		{child: "switches", scenario: "hgx-nvswitch", frozen: true},
		{child: "cpus", scenario: "grace", frozen: true},
		{child: "no-driver", scenario: "no-driver"},
		{child: "detach", scenario: "h100-8"},
		{child: "inject", scenario: "h100-8"},
		{child: "since", scenario: "h100-8"},
		{child: "accounts", scenario: "h100-8"},
	} {
		t.Run(tc.child+"-"+tc.scenario, func(t *testing.T) {
			dir := libraries(t)
			out, err := command(t, tc.child, setUp(t, tc.scenario, tc.frozen, tc.faults...), dir).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A crash ends the process that called, once; a function that is missing ends
// it at the first call of it, and the loader says which.
func TestDeath(t *testing.T) {
	dir := libraries(t)
	state := setUp(t, "h100-8", false, "dcgm-crash --call=dcgmGetAllDevices")
	if out, err := command(t, "unguarded", state, dir).CombinedOutput(); err == nil || !strings.Contains(err.Error(), "segmentation fault") {
		t.Errorf("crash: %v\n%s", err, out)
	}
	if out, err := command(t, "unguarded", state, dir).CombinedOutput(); err != nil {
		t.Errorf("after the crash: %v\n%s", err, out)
	}
	lacking := t.TempDir()
	if err := sim.WithoutSymbolsIn(filepath.Join(dir, "libdcgm.so.4"), lacking, []string{"dcgmGetAllDevices"}); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "unguarded", setUp(t, "h100-8", false), lacking, dir)
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 127 || !bytes.Contains(out, []byte("undefined symbol: dcgmGetAllDevices")) {
		t.Errorf("without the function: status %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
}
