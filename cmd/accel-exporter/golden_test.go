package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// hidden begin the names of families whose series depend on the build or the process
// instead of the scenario, and the series of a source that finds nothing: a new source
// shall not change the pages of machines without its hardware. The golden files do not
// have them.
var hidden = []string{
	"go_", "process_cpu_", "process_max_", "process_open_", "process_resident_", "process_start_", "process_virtual_",
	"promhttp_", "accel_exporter_build_info", `accel_source_up{reason="absent"`,
}

// volatile begin the names of families whose values differ from run to run. The golden
// files have their series without the value.
var volatile = []string{
	"accel_source_age_seconds", "accel_source_round_duration_seconds", "accel_source_rounds_total",
	"accel_source_rejected_values_total", "accel_native_call_errors_total",
}

// begins reports whether s begins with one of the prefixes. A page has thousands of
// lines, for which regular expressions cost a tenth of all tests.
func begins(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// family returns the rest of a line from the name of its family on, and whether the
// line is a series.
func family(line string) (rest string, series bool) {
	for _, comment := range []string{"# HELP ", "# TYPE "} {
		if rest, found := strings.CutPrefix(line, comment); found {
			return rest, false
		}
	}
	return line, true
}

// ownLog matches the path of the test's copy of a kernel log.
var ownLog = regexp.MustCompile(`path="[^"]*/state\.kmsg"`)

// startOfIncident matches the start of an incident, which is a label.
var startOfIncident = regexp.MustCompile(`since="[^"]*"`)

// normalise removes the parts of a page that differ from run to run.
func normalise(page string) string {
	page = ownLog.ReplaceAllString(page, `path="LOG"`)
	page = startOfIncident.ReplaceAllString(page, `since="VOLATILE"`)
	var b strings.Builder
	for line := range strings.Lines(page) {
		rest, series := family(line)
		if begins(rest, hidden) {
			continue
		}
		if name := line[:strings.IndexAny(line, "{ ")]; series && (begins(name, volatile) || strings.Contains(name, "_timestamp_seconds") ||
			strings.HasPrefix(name, "accel_pcie_") && strings.HasSuffix(name, "_bytes_total")) {
			line = line[:strings.LastIndexByte(line, ' ')] + " VOLATILE\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// fixtureNames returns the names of the files of a folder of fixtures.
func fixtureNames(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob("../../fixtures/" + dir + "/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", dir, err)
	}
	for i, path := range names {
		names[i] = strings.TrimSuffix(filepath.Base(path), ".yaml")
	}
	return names
}

// TestGolden runs the exporter with its worker on every scenario, with a stopped
// clock, and compares the metrics page with the golden file.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range fixtureNames(t, "scenarios") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, name, []string{"--frozen=600"}, "--health.catalogue="+patient(t))
			lint(t, settleAs(n, name+".metrics", normalise))
		})
	}
}

// TestGoldenStandard does so at --metrics.detail=standard, where a page must stay
// small enough for a fleet.
func TestGoldenStandard(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"h100-8": 900, "b200-8": 1100, "gb200-4": 0, "mixed-node": 0, "one-lost": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, name, []string{"--frozen=600"}, "--health.catalogue="+patient(t), configured(t, "metrics: {detail: standard}"))
			lint(t, settleAs(n, name+".standard.metrics", normalise))
			if _, page := n.get("/metrics"); most > 0 && onPage(page) > most {
				t.Errorf("%d series, at most %d are wanted", onPage(page), most)
			}
		})
	}
}

// onPage counts the series of a page.
func onPage(page string) int {
	n := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// TestAttention: an ill device has all its series at --metrics.detail=standard, its
// neighbours do not.
func TestAttention(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil, configured(t, "metrics: {detail: standard}"))
	n.until(`^accel_device_health\{device="GPU-.*state="healthy"\} 1$`, kernelLogRead, `!^accel_nvlink_up\{`)
	n.sim("inject", "xid", "48", "2")
	page := n.until(`^accel_device_health\{.*state="failed"\} 1$`, `^accel_nvlink_up\{`, `^accel_device_action\{action="none".* 0$`)
	ill := map[string]bool{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "accel_nvlink_up{") {
			_, rest, _ := strings.Cut(line, `device="`)
			id, _, _ := strings.Cut(rest, `"`)
			ill[id] = true
		}
	}
	if len(ill) != 1 {
		t.Errorf("links of %d devices are on the page, want the links of the ill device alone", len(ill))
	}
}

// patient writes a catalogue in which no wait ends. The golden pages show a node's
// first seconds, and a slow machine takes longer.
func patient(t *testing.T) string {
	t.Helper()
	builtin, err := os.ReadFile("../../internal/judge/health/catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := "conditions:\n"
	for _, m := range regexp.MustCompile(`(?m)^  - \{reason: (\w+),.* for: `).FindAllSubmatch(builtin, -1) {
		text += fmt.Sprintf("  - {reason: %s, for: 24h}\n", m[1])
	}
	return tempFile(t, "catalogue.yml", text)
}

// lint checks names, help texts and types with promlint, and that no series is
// duplicated. promlint compares all series of a family pairwise by reflection,
// so it gets one series per family.
func lint(t *testing.T, page string) {
	t.Helper()
	var families strings.Builder
	series, names := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			families.WriteString(line)
			continue
		}
		one := line[:strings.LastIndexByte(line, ' ')]
		if series[one] {
			t.Errorf("duplicate series: %s", one)
		}
		series[one] = true
		if name, _, _ := strings.Cut(one, "{"); !names[name] {
			names[name] = true
			families.WriteString(line)
		}
	}
	problems, err := promlint.New(strings.NewReader(families.String())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "accel_") {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
}

// settle returns the page once it no longer changes: values that need two
// samples or a window are present or will not appear.
func settle(n *node) string {
	n.poll(func() bool { code, _ := n.get("/-/ready"); return code == 200 }, func() string { return "readiness" })
	var page string
	seen := map[string]int{}
	n.poll(func() bool {
		_, page = n.get("/metrics")
		rounds := roundsMade(page)
		if rounds == "" {
			return strings.Contains(page, "accel_source_up{")
		}
		seen[rounds]++
		return len(seen) >= settledAfter
	}, func() string { return "rounds" })
	return page
}

// settleAs compares the settled page, reduced, with a golden file. With -update the
// page that is written has had all the rounds, unless it is that of the file.
func settleAs(n *node, name string, reduce func(string) string) string {
	n.t.Helper()
	file := filepath.Join("testdata", "golden", name)
	settle(n)
	page := n.rounds(func(page string) bool { return golden.Matches(file, reduce(page)) })
	golden.Compare(n.t, file, reduce(page))
	return page
}

// rounds returns the page once it is good, else after as many rounds as show that it
// stays as it is: on a busy machine the second sample of activity comes late.
func (n *node) rounds(good func(page string) bool) string {
	n.t.Helper()
	_, page := n.get("/metrics")
	seen := map[string]bool{}
	for polls := 0; polls < 1000 && len(seen) < 10*settledAfter; polls++ {
		if rounds := roundsMade(page); rounds == "" || !seen[rounds] {
			if seen[rounds] = true; good(page) {
				break
			}
		}
		time.Sleep(pollInterval)
		_, page = n.get("/metrics")
	}
	return page
}

// settledAfter is the number of rounds after which the page of a node with a
// stopped clock is complete.
const settledAfter = 6

// roundsMade returns the counters of good rounds of the source nvidia that are not 0.
func roundsMade(page string) string {
	var made []string
	_, rest, _ := strings.Cut(page, "\n# TYPE accel_source_rounds_total counter\n")
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "#") {
			break
		}
		good := begins(line, []string{`accel_source_rounds_total{outcome="ok",source="nvidia"`, `accel_source_rounds_total{outcome="partial",source="nvidia"`})
		if good && !strings.HasSuffix(line, " 0\n") {
			made = append(made, line)
		}
	}
	return strings.Join(made, "")
}
