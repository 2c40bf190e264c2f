package dcgm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// patience is how long a test waits for what must come, on however slow a machine.
const patience = 3 * time.Minute

// A process loads one libdcgm, by its name alone, and go-dcgm has one engine in
// it: every case runs in a child.

// children are what a child may do: an error fails the test.
var children = map[string]func() error{
	"agree":  embedded(agree),
	"blanks": embedded(blanks),
}

// embedded is a child with an engine in its process.
func embedded(do func(*client)) func() error {
	return func() error {
		c, err := open()
		if err != nil {
			return err
		}
		do(c)
		return c.close()
	}
}

func TestMain(m *testing.M) {
	if name := simtest.Child(); name != "" {
		if err := children[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	simtest.Main(m)
}

// libraries is the folder with both simulated libraries.
func libraries(t *testing.T) string { return simtest.Libraries(t, "nvml", "dcgm") }

// setUp writes the state of a scenario, with its clock stopped at 100 s where
// frozen, and edits it by faults.
func setUp(t *testing.T, scenario string, frozen bool, faults ...string) (state string) {
	t.Helper()
	o := sim.Options{}
	if at := 100.0; frozen {
		o.Frozen = &at
	}
	var words [][]string
	for _, f := range faults {
		words = append(words, strings.Fields(f))
	}
	state = filepath.Join(t.TempDir(), "state")
	simtest.Install(t, state, scenario, o, words...)
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
	return simtest.Command(ctx, name, state, []string{"-test.run=^$"}, "LD_LIBRARY_PATH="+strings.Join(folders, ":"))
}

func TestThroughGoDCGM(t *testing.T) {
	for _, tc := range []struct {
		child, scenario string
		frozen          bool
		faults          []string
	}{
		{child: "agree", scenario: "h100-8", frozen: true},
		{child: "agree", scenario: "b200-8", frozen: true},
		{child: "agree", scenario: "a100", frozen: true},
		{child: "agree", scenario: "l40s", frozen: true},
		{child: "agree", scenario: "t4", frozen: true},
		{child: "agree", scenario: "garbage", frozen: true},
		{child: "blanks", scenario: "h100-8"},
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
