package sim

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// A scenario compiles to a state that reads back as itself, or is refused with
// the file's name; it never panics.
func FuzzScenario(f *testing.F) {
	files, err := fs.Glob(fixtures, "scenarios/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(fixtures, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sc, err := ParseScenario("x.yaml", data)
		if err != nil {
			if !strings.Contains(err.Error(), "x.yaml") {
				t.Errorf("the complaint %q does not name the file", err)
			}
			return
		}
		s, err := sc.Compile(fixtures, Options{})
		if err != nil {
			return
		}
		again, err := ParseState(s.Bytes())
		if err != nil {
			t.Fatalf("the state cannot be read: %v\n%s", err, s.Bytes())
		}
		if string(again.Bytes()) != string(s.Bytes()) {
			t.Error("the state changes when read")
		}
	})
}

// Whatever is injected, the state stays readable, and clear takes faults away.
func FuzzInject(f *testing.F) {
	for _, fault := range Faults {
		f.Add(fault.Name + " 1 0")
		f.Add(fault.Name + " 0 1 2 --count=3")
	}
	f.Add("set temperature nan 4/0\nmig 4 3g.40gb:1c+2c\nset load 1 4/0\necc uncorrected 4/0 --location=sram")
	f.Add("set name odd\x00name 0\nfield 230 error:NO_DATA all\nnvlink 3 errors 0 --counter=field.208")
	f.Add("fpga-reconfigure n3000 --fail\nfpga-reconfigure u250\nfpga-temperature 0 -300\nbus-loss all\nclear 0\naer 1b:00.0 fatal --name=TLP --count=99999999999999999999")
	f.Add("pod-start a/b gpu:7 replica:5::2 --pid=9\npod-finish b\nprocess-start 10 7 --pod=b\npod-start a/b mig:4/0\npod-end llm-0")
	f.Add("api-server-down\nkubelet-restart\npod-evict probe-0 --xid=79\ndevice-healthy 4\nclear")
	f.Add("process-start 9 0 --name=/(x\nmig 4 off\nkubelet-restart --pods=-1\ndevice-unhealthy mig:4/0")
	sc, err := LoadScenario(fixtures, "h100-8")
	if err != nil {
		f.Fatal(err)
	}
	sc.Trees = []string{"intel-n3000-dfl", "xilinx-u250-xrt"}
	begun, err := sc.Compile(fixtures, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, script string) {
		s, err := ParseState(begun.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		s.tree, s.begun = begun.begun.Clone(), begun.begun
		for words := range strings.SplitSeq(script, "\n") {
			if fields := strings.Fields(words); len(fields) < 12 {
				_ = s.Inject(fields)
			}
		}
		again, err := ParseState(s.Bytes())
		if err != nil {
			t.Fatalf("the state cannot be read: %v\n%s", err, s.Bytes())
		}
		if _, err := faketree.Parse("tree", s.tree.Bytes()); err != nil {
			t.Fatalf("the tree cannot be read: %v", err)
		}
		uids := map[string]bool{"": true}
		for _, p := range s.pods() {
			uids[p.uid] = true
			if _, uid, ok := proc.ParsePodDir(p.namespace + "_" + p.name + "_" + p.uid); !ok || uid != p.uid {
				t.Errorf("the pod %+v has an odd name", p)
			}
		}
		for _, pid := range s.pids() {
			if uid := attr(s.Get("proc."+pid), "pod"); !uids[uid] {
				t.Errorf("process %s is of the pod %s, which is not there", pid, uid)
			}
		}
		for resource, ids := range s.allocatable() {
			for _, id := range ids {
				if !deviceName.MatchString(resource) || !deviceName.MatchString(id) {
					t.Errorf("%q of %q is allocatable", id, resource)
				}
			}
		}
		if err := again.Clear("all"); err != nil {
			t.Fatal(err)
		}
		if n := len(again.keys("fault.")) + len(again.keys("touched.")); n != 0 {
			t.Errorf("clear left %d faults", n)
		}
	})
}
