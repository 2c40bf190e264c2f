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

// file returns a file of a job directory.
func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// jobLabels returns the hpc_job labels on the page of a node with a whole GPU
// and a GPU with a MIG instance.
func jobLabels(t *testing.T, folder fstest.MapFS) string {
	t.Helper()
	s := snapshot([]*device{
		gpu(gpu0, "0").set(collector.TemperatureCelsius, 40, "gpu").set(collector.MIGMode, 1, "current"),
		instance(mig0, gpu0, "0:1:0", "1g.10gb").set(collector.MemoryUsed, 1<<20),
		gpu(gpu1, "1").set(collector.TemperatureCelsius, 41, "gpu").set(collector.NVLinkUp, 1, "3"),
	})
	o := compat.Options{Counters: parseRows(t, "DCGM_FI_DEV_GPU_TEMP, gauge, x", "DCGM_FI_DEV_FB_USED, gauge, x"), Jobs: compat.ReadJobs(folder)}
	var labels []string
	for line := range strings.Lines(page(t, o, s, "DCGM_")) {
		unit := "gpu" + labelIn(line, "gpu")
		if labelIn(line, "GPU_I_ID") != "" {
			unit = "mig"
		}
		labels = append(labels, unit+"="+labelIn(line, "hpc_job"))
	}
	slices.Sort(labels)
	return strings.Join(labels, " ")
}

// labelIn returns the value of a label in a line of a page, or "".
func labelIn(line, name string) string {
	m := regexp.MustCompile(`[{,]` + name + `="((?:[^"\\]|\\.)*)"`).FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}

// TestJobs checks that the job ids of a file are in one label of its GPU's or
// instance's series.
func TestJobs(t *testing.T) {
	for name, c := range map[string]struct {
		folder          fstest.MapFS
		gpu0, mig, gpu1 string
	}{
		"nothing":            {fstest.MapFS{}, "", "", ""},
		"a GPU":              {fstest.MapFS{"1": file("4711\n")}, "", "", "4711"},
		"an instance":        {fstest.MapFS{"0.1": file("4711")}, "", "4711", ""},
		"a partitioned GPU":  {fstest.MapFS{"0": file("4711")}, "4711", "", ""},
		"several jobs":       {fstest.MapFS{"1": file("7\r\n3\n\n7\n")}, "", "", "7,3"},
		"an empty file":      {fstest.MapFS{"1": file("\n")}, "", "", ""},
		"a missing GPU":      {fstest.MapFS{"7": file("4711"), "0.9": file("1")}, "", "", ""},
		"an id with a quote": {fstest.MapFS{"1": file(`a"b`)}, "", "", `a\"b`},
	} {
		t.Run(name, func(t *testing.T) {
			want := "gpu0=" + c.gpu0 + " gpu1=" + c.gpu1 + " mig=" + c.mig
			if got := jobLabels(t, c.folder); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestJobsRejected checks that invalid entries are counted and valid ones are
// used.
func TestJobsRejected(t *testing.T) {
	many := strings.Builder{}
	for i := range 20 {
		fmt.Fprintf(&many, "job-%d\n", i)
	}
	full := fstest.MapFS{"1": file("4711")}
	for i := range 1100 {
		full[fmt.Sprintf("%d", 1000+i)] = file("1")
	}
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   map[string]int
	}{
		"valid":            {fstest.MapFS{"1": file("4711"), "0.1": file("1"), ".tmp": file("x"), "logs/1": file("x")}, map[string]int{}},
		"names":            {fstest.MapFS{"1": file("4711"), "gpu1": file("1"), "01": file("1"), "0.": file("1"), "1.2.3": file("1"), "-1": file("1"), "70000": file("1")}, map[string]int{"name": 6}},
		"ids":              {fstest.MapFS{"1": file("4711\na,b\na\x07b\n\xff\n" + strings.Repeat("x", 257))}, map[string]int{"id": 4}},
		"too many jobs":    {fstest.MapFS{"1": file("4711\n" + many.String())}, map[string]int{"overflow": 5}},
		"a file too large": {fstest.MapFS{"1": file("4711\n" + strings.Repeat("4711\n", 5000))}, map[string]int{"overflow": 1}},
		"too many files":   {full, map[string]int{"overflow": 1101 - 1024}},
		"a pipe":           {fstest.MapFS{"1": file("4711"), "0": &fstest.MapFile{Mode: os.ModeNamedPipe}}, map[string]int{"unreadable": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compat.ReadJobs(c.folder).Rejected(); !maps.Equal(got, c.want) {
				t.Errorf("rejected %v, want %v", got, c.want)
			}
			if got := jobLabels(t, c.folder); !strings.Contains(got, "gpu1=4711") {
				t.Errorf("a valid entry is missing: %s", got)
			}
		})
	}
	if got := compat.ReadJobs(os.DirFS(t.TempDir() + "/missing")).Rejected(); !maps.Equal(got, map[string]int{"folder": 1}) {
		t.Errorf("missing directory: %v", got)
	}
}

// TestJobsPipe checks that a named pipe without a writer does not block the
// reader.
func TestJobsPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/0", 0o600); err != nil {
		t.Skip(err)
	}
	if got := compat.ReadJobs(os.DirFS(dir)).Rejected(); !maps.Equal(got, map[string]int{"unreadable": 1}) {
		t.Errorf("rejected %v", got)
	}
}

// FuzzJobs: whatever a job file holds, its GPU has one series, of bounded length.
func FuzzJobs(f *testing.F) {
	f.Add([]byte("4711\n"))
	f.Add([]byte("a\"b\n\xff\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		o := compat.Options{Counters: parseRows(t, "DCGM_FI_DEV_GPU_TEMP, gauge, x"), Jobs: compat.ReadJobs(fstest.MapFS{"1": {Data: text}})}
		got := page(t, o, snapshot([]*device{gpu(gpu1, "1").set(collector.TemperatureCelsius, 41, "gpu")}), "DCGM_")
		if strings.Count(got, "\n") != 1 || len(got) > 20<<10 {
			t.Errorf("page: %q", got)
		}
	})
}
