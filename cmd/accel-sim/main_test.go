package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

func TestGuardNegative(t *testing.T) {
	for _, tc := range [][2]string{
		{"inject set temperature -1 0", "inject set temperature -- -1 0"},
		{"inject set temperature -- -1 0", "inject set temperature -- -1 0"},
		{"inject xid 79 0 --gi=2", "inject xid 79 0 --gi=2"},
		{"run -- prog -1", "run -- prog -1"},
	} {
		if got := guardNegative(strings.Fields(tc[0])); !slices.Equal(got, strings.Fields(tc[1])) {
			t.Errorf("%s became %v", tc[0], got)
		}
	}
}

// do runs accel-sim with a state file.
func do(state string, words ...string) error {
	return run(append([]string{"--state=" + state, "--fixtures=../../fixtures"}, words...))
}

// Every fault is a command; a scenario can be set up, edited and cleared.
func TestCommands(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := do(state, "inject", "lost", "0"); err == nil || !strings.Contains(err.Error(), "accel-sim run") {
		t.Errorf("without a simulation: %v", err)
	}
	if err := do(state, "inject", "xdi", "79", "1"); err == nil || !strings.Contains(err.Error(), `unknown fault "xdi" (did you mean xid?); accepted are xid, event, `) {
		t.Errorf("an unknown fault: %v", err)
	}
	for _, words := range []string{
		"scenarios", "compile --scenario=h100-8 --frozen=5", "inject xid 94 4/1 --count=3", "inject set temperature -1 0",
		"inject mig 4 7g.80gb", "inject hang all --for=10ms --call=nvmlDeviceGetName", "inject ecc uncorrected 2 --location=sram", "clear 0",
		"inject kernel-log NVRM: what it says", "inject xid 13 0 --no-log", "inject aer 1 fatal --no-log --count=2",
	} {
		if err := do(state, strings.Fields(words)...); err != nil {
			t.Fatalf("%s: %v", words, err)
		}
	}
	s, err := sim.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Get("gpu.0.temperature.gpu"); got != "@0 model @5.000 -1 @5.000 model" {
		t.Errorf("the temperature is %q", got)
	}
	if s.Get("seq") != "6" {
		t.Errorf("%s events, want four Xids, one of MIG and one of ECC", s.Get("seq"))
	}
	log, err := os.ReadFile(sim.KernelLog(state))
	if lines := strings.Split(string(log), "\n"); err != nil || len(lines) != 6 || !strings.HasSuffix(lines[4], ";NVRM: what it says") {
		t.Errorf("%v, the kernel logged:\n%s", err, log)
	}
}

// One run uses a state file at a time, and a fault needs a run in progress.
func TestOneRun(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := sim.Claim(state); err != nil { // as accel-sim run
		t.Fatal(err)
	}
	for _, words := range [][]string{{"run", "--library=main.go", "--", "true"}, {"compile"}} {
		if err := do(state, words...); err == nil || !strings.Contains(err.Error(), "the process "+strconv.Itoa(os.Getpid())+" runs") {
			t.Errorf("%v: %v", words, err)
		}
	}
	other := filepath.Join(t.TempDir(), "state")
	if err := do(other, "compile"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other+".run", []byte("1"), 0o644); err != nil { // its run has ended
		t.Fatal(err)
	}
	if err := do(other, "inject", "lost", "1"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("after the end: %v", err)
	}
}

// A tree is written with the content of its file, and both DIR and DIR/sys
// work.
func TestTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "tree")
	for range 2 { // a second time over the first
		if err := run([]string{"tree", "../../fixtures/trees/intel-n3000-dfl.txt", dir}); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{dir, filepath.Join(dir, "sys")} {
		got, err := os.ReadFile(filepath.Join(root, "bus/platform/devices/dfl-port.0/afu_id"))
		if err != nil || string(got) != "9aeffe5f84570612c000c9660d824272\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := run([]string{"tree", "../../fixtures/trees/README.md", dir}); err == nil || !strings.Contains(err.Error(), "README.md:3: ") {
		t.Errorf("no tree file: %v", err)
	}
}

// compile prints the flags of an exporter.
func TestCompilePrintsFlags(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	got, err := self(t, "accel-sim", "--state="+state, "--fixtures=../../fixtures", "compile", "--scenario=mixed-node", "--library=/lib/x.so", "--flags").Output()
	want := "--nvml.library=/lib/x.so\n--path.sysfs=" + state + ".root/sys\n--path.procfs=" + state + ".root/proc\n--kernel-log.path=" + state + ".kmsg\n" +
		"--podresources.socket=" + state + ".kubelet/kubelet.sock\n--path.pod-logs=" + state + ".root/var/log/pods\n"
	if string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, flag := range strings.Fields(want)[1:] {
		name, path, _ := strings.Cut(flag, "=")
		if _, err := os.Stat(path); err != nil && name != "--podresources.socket" { // until somebody serves it there is none
			t.Error(err)
		}
	}
}

// With --fuse the reads of the program's /sys fail as on a real machine, and
// after its end nothing is mounted.
func TestRunMounted(t *testing.T) {
	if !faketree.CanMount() {
		t.Skip("mounting needs root and /dev/fuse")
	}
	dir := t.TempDir()
	state, out := filepath.Join(dir, "state"), filepath.Join(dir, "out")
	script := `cd "$(dirname "$1")"; cat "$1.root/sys/bus/platform/devices/dfl-port.0/afu_id" "$1.root/sys/class/fpga_region/region0/compat_id" > "$2" 2>&1; exit 7`
	err := do(state, "run", "--scenario=mixed-node", "--library=main.go", "--fuse", "--", "sh", "-c", script, "sh", state, out)
	if err == nil || err.Error() != "exit status 7" {
		t.Errorf("the program ended with %v", err)
	}
	got, err := os.ReadFile(out)
	if lines := strings.Split(string(got), "\n"); err != nil || lines[0] != "9aeffe5f84570612c000c9660d824272" || !strings.HasSuffix(lines[1], "No such file or directory") {
		t.Errorf("%v: %s", err, got)
	}
	if list, err := os.ReadDir(state + ".root"); err != nil || len(list) != 0 {
		t.Errorf("still mounted: %v, %v", list, err)
	}
}
