package tools

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// illness is what befalls GPUs of the page, by family and gpu: the value they
// have from then on, or, of counters, by how much they grow with every scrape.
var illness = []struct {
	family, gpu string
	value, step float64
}{
	{"DCGM_FI_DEV_GPU_TEMP", "6", 93, 0},
	{"DCGM_FI_DEV_MEMORY_TEMP", "6", 101, 0},
	{"DCGM_FI_DEV_XID_ERRORS", "7", 79, 0},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "7", 2, 0},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "7", 0, 3},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "7", 1, 0},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING", "7", 1, 0},
	{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "7", 0, 1},
	{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "2", 0, 4},
	{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "2", 0, 4},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", "6", 0, 9e8},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "0", 0, 6e5},
	{"DCGM_EXP_GPU_HEALTH_STATUS", "7", 20, 0},
}

// dcgmPage serves the page on record of a node with its GPUs ill.
func dcgmPage(t *testing.T) string {
	t.Helper()
	data := recordedPage(t, "h100-8.compat-user.metrics")
	var scrapes atomic.Int64
	return served(t, func() string {
		page, n := data, float64(scrapes.Add(1))
		for _, ill := range illness {
			series := regexp.MustCompile(`(?m)^(` + ill.family + `\{[^\n]*gpu="` + ill.gpu + `"[^\n]*\}) .*$`)
			page = series.ReplaceAllString(page, "${1} "+strconv.FormatFloat(ill.value+n*ill.step, 'f', -1, 64))
		}
		return page + "kube_pod_labels{namespace=\"training\",pod=\"llm-0\",label_app=\"llm\"} 1\n"
	})
}

// recordedPage returns a golden page of the exporter's tests.
func recordedPage(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "cmd/accel-exporter/testdata/golden", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDCGMExporterRules: rules and dashboards written for dcgm-exporter work on
// our page of its families as they are: every query returns data, and every
// alert fires for the GPUs that are ill.
func TestDCGMExporterRules(t *testing.T) {
	program(t, "PROMETHEUS")
	rules, err := filepath.Abs("testdata/dcgm-exporter/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := startPrometheus(t, t.TempDir(), scrapes("gpu-metrics", dcgmPage(t), "instance: n1", "rule_files: ['"+rules+"']\n"))
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	queries := matches(string(text), `(?m)^ +expr: (.+)$`)
	queries = append(queries, matches(string(text), `(?m)^ +- record: (.+)$`)...)
	for _, name := range matches(string(text), `(?m)^ +- alert: (.+)$`) {
		queries = append(queries, `ALERTS{alertstate="firing",alertname="`+name+`"}`)
	}
	board, err := os.ReadFile("testdata/dcgm-exporter/queries.txt")
	if err != nil {
		t.Fatal(err)
	}
	queries = append(queries, matches(string(board), `(?m)^([^#\n].*)$`)...)
	if len(queries) < 60 {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		p.awaits(t, q)
	}
}

// migrationRow is a field of DCGM, by its name until 4.8, and its equivalent in the manual.
var migrationRow = regexp.MustCompile("(?m)^\\| \\**`(DCGM_FI_\\w+)`[^|]* \\| [^|]* \\| (`.+`) \\|$")

// TestMigrationTable: the queries of the manual give what the families of
// dcgm-exporter give, GPU by GPU, in Prometheus itself.
func TestMigrationTable(t *testing.T) {
	program(t, "PROMETHEUS")
	var both string
	for _, name := range []string{"h100-8.metrics", "h100-8.compat-user.metrics"} {
		both += regexp.MustCompile(`(?m)^.* VOLATILE\n`).ReplaceAllString(recordedPage(t, name), "")
	}
	p := startPrometheus(t, t.TempDir(), scrapes("both", served(t, func() string { return both }), "instance: n1", ""))
	p.awaits(t, "DCGM_FI_DEV_GPU_TEMP and on () accel_temperature_celsius")

	manual, err := os.ReadFile(filepath.Join(root, "docs/migrating-from-dcgm-exporter.md"))
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, row := range migrationRow.FindAllStringSubmatch(string(manual), -1) {
		theirs := p.byDevice(t, row[1]+`{GPU_I_ID=""}`, "UUID")
		if len(theirs) == 0 {
			continue // not on this page, or by instance only
		}
		var ours map[string]float64
		for _, q := range strings.Split(strings.Trim(row[2], "`"), "`; else `") {
			if ours = p.byDevice(t, q, "device"); len(ours) > 0 {
				break
			}
		}
		for uuid, v := range theirs {
			w, ok := ours[uuid]
			if !ok || math.Abs(v-w) > max(0.5, 1e-9*v) {
				t.Errorf("%s of %s is %v, by %s %v", row[1], uuid, v, row[2], w)
			}
		}
		compared++
	}
	t.Logf("%d fields compared", compared)
	if compared < 35 {
		t.Errorf("only %d fields were compared", compared)
	}
}

// byDevice are the values of a query by a label; of a GPU that pods share, that
// of the GPU.
func (p prom) byDevice(t *testing.T, query, label string) map[string]float64 {
	t.Helper()
	a, err := p.instant(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
	}
	out := map[string]float64{}
	for _, r := range a.Data.Result {
		id := r.Metric[label]
		if _, again := out[id]; again && r.Metric["pod"] != "" {
			continue
		}
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		out[id] = v
	}
	return out
}

// matches returns the first group of every match.
func matches(text, pattern string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}
