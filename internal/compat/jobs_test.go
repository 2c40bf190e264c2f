package compat_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
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

// TestJobsRefused checks that invalid entries are named and valid ones are used.
func TestJobsRefused(t *testing.T) {
	full := fstest.MapFS{"1": file("4711")}
	for i := range 1100 {
		full[fmt.Sprintf("%d", 1000+i)] = file("1")
	}
	for want, folder := range map[string]fstest.MapFS{
		"": {"1": file("4711"), "0.1": file("1"), ".tmp": file("x"), "logs/1": file("x")},
		"-1: INDEX 0.: INDEX 01: INDEX 1.2.3: INDEX gpu1: INDEX": {"1": file("4711"), "gpu1": file("1"), "01": file("1"), "0.": file("1"), "1.2.3": file("1"), "-1": file("1")},
		`1: job "a,b" 1: job "a\ab" 1: job "\xff" 1: job "xxxx`:  {"1": file("4711\na,b\na\ab\n\xff\n" + strings.Repeat("x", 257))},
		"1: up to 16 jobs":      {"1": file("4711\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n")},
		"1: up to 16384 bytes":  {"1": file(strings.Repeat("4711\n", 5000))},
		"up to 1024 files":      full,
		"0: not a regular file": {"1": file("4711"), "0": &fstest.MapFile{Mode: os.ModeNamedPipe}},
	} {
		got := strings.Join(compat.ReadJobs(folder).Refused, " ")
		if pattern := strings.ReplaceAll(regexp.QuoteMeta(want), " ", ".* "); !regexp.MustCompile(pattern).MatchString(got) || want == "" && got != "" {
			t.Errorf("refused %s, want %s", got, want)
		}
		if got := jobLabels(t, folder); !strings.Contains(got, "gpu1=4711") {
			t.Errorf("%s: a valid entry is missing: %s", want, got)
		}
	}
	if got := compat.ReadJobs(os.DirFS(t.TempDir() + "/missing")).Refused; len(got) != 1 {
		t.Errorf("missing directory: %v", got)
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
