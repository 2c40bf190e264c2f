package compat_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
)

// file is one in a folder of jobs.
func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// jobbed is a node with a whole GPU and one that is cut, on which jobs run.
func jobbed(t *testing.T, folder fstest.MapFS) string {
	t.Helper()
	s := snapshot([]*device{
		gpu(gpu0, "0").set(collector.TemperatureCelsius, 40, "gpu").set(collector.MIGMode, 1, "current"),
		instance(mig0, gpu0, "0:1:0", "1g.10gb").set(collector.MemoryUsed, 1<<20),
		gpu(gpu1, "1").set(collector.TemperatureCelsius, 41, "gpu").set(collector.NVLinkUp, 1, "3"),
	})
	o := compat.Options{Counters: parseRows(t, "DCGM_FI_DEV_GPU_TEMP, gauge, x", "DCGM_FI_DEV_FB_USED, gauge, x"), Jobs: compat.ReadJobs(folder)}
	var told []string
	for line := range strings.Lines(page(t, o, s, "DCGM_")) {
		who := "gpu" + labelIn(line, "gpu")
		if labelIn(line, "GPU_I_ID") != "" {
			who = "mig"
		}
		told = append(told, who+"="+labelIn(line, "hpc_job"))
	}
	slices.Sort(told)
	return strings.Join(told, " ")
}

// labelIn is the value of a label in a line of a page.
func labelIn(line, name string) string {
	m := regexp.MustCompile(`[{,]` + name + `="((?:[^"\\]|\\.)*)"`).FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}

// The job that a file names stands on the series of its GPU or instance; of
// several all of them on one series.
func TestJobs(t *testing.T) {
	for name, c := range map[string]struct {
		folder          fstest.MapFS
		gpu0, mig, gpu1 string
	}{
		"nothing":            {fstest.MapFS{}, "", "", ""},
		"a GPU":              {fstest.MapFS{"1": file("4711\n")}, "", "", "4711"},
		"an instance":        {fstest.MapFS{"0.1": file("4711")}, "", "4711", ""},
		"a GPU that is cut":  {fstest.MapFS{"0": file("4711")}, "4711", "", ""},
		"several jobs":       {fstest.MapFS{"1": file("7\r\n3\n\n7\n")}, "", "", "7,3"},
		"an empty file":      {fstest.MapFS{"1": file("\n")}, "", "", ""},
		"of no GPU here":     {fstest.MapFS{"7": file("4711"), "0.9": file("1")}, "", "", ""},
		"an id with a quote": {fstest.MapFS{"1": file(`a"b`)}, "", "", `a\"b`},
	} {
		t.Run(name, func(t *testing.T) {
			want := "gpu0=" + c.gpu0 + " gpu1=" + c.gpu1 + " mig=" + c.mig
			if got := jobbed(t, c.folder); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// What is wrong with a folder is counted, and the rest of it is taken.
func TestJobsRejected(t *testing.T) {
	many := strings.Builder{}
	for i := range 20 {
		fmt.Fprintf(&many, "job-%d\n", i)
	}
	crowd := fstest.MapFS{"1": file("4711")}
	for i := range 1100 {
		crowd[fmt.Sprintf("%d", 1000+i)] = file("1")
	}
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   map[string]int
	}{
		"fine":               {fstest.MapFS{"1": file("4711"), "0.1": file("1"), ".tmp": file("x"), "logs/1": file("x")}, map[string]int{}},
		"names":              {fstest.MapFS{"1": file("4711"), "gpu1": file("1"), "01": file("1"), "0.": file("1"), "1.2.3": file("1"), "-1": file("1"), "70000": file("1")}, map[string]int{"name": 6}},
		"ids":                {fstest.MapFS{"1": file("4711\na,b\na\x07b\n\xff\n" + strings.Repeat("x", 257))}, map[string]int{"id": 4}},
		"too many jobs":      {fstest.MapFS{"1": file("4711\n" + many.String())}, map[string]int{"overflow": 5}},
		"too much of a file": {fstest.MapFS{"1": file("4711\n" + strings.Repeat("4711\n", 5000))}, map[string]int{"overflow": 1}},
		"too many files":     {crowd, map[string]int{"overflow": 1101 - 1024}},
		"a pipe":             {fstest.MapFS{"1": file("4711"), "0": &fstest.MapFile{Mode: os.ModeNamedPipe}}, map[string]int{"unreadable": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compat.ReadJobs(c.folder).Rejected(); !maps.Equal(got, c.want) {
				t.Errorf("rejected %v, want %v", got, c.want)
			}
			if got := jobbed(t, c.folder); !strings.Contains(got, "gpu1=4711") {
				t.Errorf("the rest is not taken: %s", got)
			}
		})
	}
	if got := compat.ReadJobs(os.DirFS(t.TempDir() + "/missing")).Rejected(); !maps.Equal(got, map[string]int{"folder": 1}) {
		t.Errorf("no folder: %v", got)
	}
}

// A pipe that nobody writes to does not hold the reader up.
func TestJobsOfAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/0", 0o600); err != nil {
		t.Skip(err)
	}
	if got := compat.ReadJobs(os.DirFS(dir)).Rejected(); !maps.Equal(got, map[string]int{"unreadable": 1}) {
		t.Errorf("rejected %v", got)
	}
}

// Two looks at a folder are told apart by what they say.
func TestJobsEqual(t *testing.T) {
	a := compat.ReadJobs(fstest.MapFS{"1": file("7\n3")})
	for name, c := range map[string]struct {
		folder fstest.MapFS
		same   bool
	}{
		"same":          {fstest.MapFS{"1": file("7\n3\n")}, true},
		"another job":   {fstest.MapFS{"1": file("7\n4")}, false},
		"another GPU":   {fstest.MapFS{"0": file("7\n3")}, false},
		"a bad file":    {fstest.MapFS{"1": file("7\n3"), "x": file("")}, false},
		"no job at all": {fstest.MapFS{}, false},
	} {
		if got := a.Equal(compat.ReadJobs(c.folder)); got != c.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzJobs: whatever a folder holds, the page stands, and its labels are
// bounded.
func FuzzJobs(f *testing.F) {
	f.Add("1", []byte("4711\n"))
	f.Add("0.1", []byte("a\"b\n\xff\n"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		if !fstestName(name) {
			return
		}
		j := compat.ReadJobs(fstest.MapFS{name: &fstest.MapFile{Data: text}})
		o := compat.Options{Counters: parseRows(t, "DCGM_FI_DEV_GPU_TEMP, gauge, x"), Jobs: j}
		s := snapshot([]*device{gpu(gpu1, "1").set(collector.TemperatureCelsius, 41, "gpu")})
		got := page(t, o, s, "DCGM_")
		if strings.Count(got, "\n") != 1 || len(got) > 20<<10 {
			t.Errorf("page: %q", got)
		}
	})
}

// fstestName reports whether a name can be a file's in a folder.
func fstestName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}
