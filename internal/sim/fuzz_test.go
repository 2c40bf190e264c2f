package sim

import (
	"io/fs"
	"strings"
	"testing"
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
	f.Fuzz(func(t *testing.T, script string) {
		s := compiled(t, "h100-8")
		for words := range strings.SplitSeq(script, "\n") {
			if fields := strings.Fields(words); len(fields) < 12 {
				_ = s.Inject(fields)
			}
		}
		again, err := ParseState(s.Bytes())
		if err != nil {
			t.Fatalf("the state cannot be read: %v\n%s", err, s.Bytes())
		}
		if err := again.Clear("all"); err != nil {
			t.Fatal(err)
		}
		if n := len(again.keys("fault.")) + len(again.keys("touched.")); n != 0 {
			t.Errorf("clear left %d faults", n)
		}
	})
}
