package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

// step is a command of the tour.
type step struct {
	command  string
	terminal bool   // it runs until the end
	output   string // lines that it prints, in this order
}

var block = regexp.MustCompile("(?ms)^```(\\w+)( terminal)?\n(.*?)^```$")

func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		switch {
		case m[1] == "sh":
			all = append(all, step{command: m[3], terminal: m[2] != ""})
		case m[1] == "text" && len(all) > 0 && all[len(all)-1].output == "":
			all[len(all)-1].output = m[3]
		default:
			t.Fatalf("neither a command nor its output: %s", m[0])
		}
	}
	if len(all) == 0 || 2*len(block.FindAllString(page, -1)) != strings.Count(page, "```") {
		t.Fatalf("%d steps, and %d fences", len(all), strings.Count(page, "```"))
	}
	return all
}

// prints returns an error unless text has every line of want in its order. "…" stands
// for anything, and one blank for several.
func prints(text, want string) error {
	lines := strings.Split(text, "\n")
	for line := range strings.Lines(want) {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(line), " ")), "…", ".*")
		at := regexp.MustCompile("^" + pattern + "$")
		for ; len(lines) > 0; lines = lines[1:] {
			if at.MatchString(strings.Join(strings.Fields(lines[0]), " ")) {
				break
			}
		}
		if len(lines) == 0 {
			return fmt.Errorf("no line %q in\n%s", strings.TrimSpace(line), text)
		}
		lines = lines[1:]
	}
	return nil
}

// TestTour runs the commands of docs/tour.md as they are written, on a network of
// their own, since the addresses in it may be in use.
func TestTour(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a network")
	}
	runtime.LockOSThread() // and its thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a private network is impossible: %v", err)
	}
	up, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	up.SetUint16(unix.IFF_UP)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, up); err != nil {
		t.Fatal(err)
	}

	t.Chdir("../..")
	page, err := os.ReadFile("docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	t.Setenv("ACCEL_SIM_STATE", filepath.Join(logs, "simulation", "state"))
	for i, s := range steps(t, string(page)) {
		look := func() (string, error) {
			out, err := exec.Command("bash", "-c", s.command).CombinedOutput()
			return string(out), err
		}
		if s.terminal {
			p, err := stack.Start(filepath.Join(logs, fmt.Sprint(i)), nil, "bash", "-c", s.command)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Stop() })
			look = func() (string, error) {
				out, err := os.ReadFile(p.Log())
				return string(out), err
			}
		}
		for deadline := time.Now().Add(stack.Patience); ; time.Sleep(200 * time.Millisecond) {
			out, err := look()
			if err == nil {
				err = prints(out, s.output)
			}
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v\n%s", s.command, err, out)
			}
		}
	}
	for _, url := range regexp.MustCompile(`<(http://127[^>]*)>`).FindAllSubmatch(page, -1) {
		if out, err := exec.Command("curl", "--fail", "--silent", "--show-error", "--output", "/dev/null", string(url[1])).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", url[1], err, out)
		}
	}
}
