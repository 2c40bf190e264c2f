package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/accel-exporter/accel-exporter/internal/golden"
)

// volatile matches the families whose values differ from run to run. The golden
// files have their series without the value.
var volatile = regexp.MustCompile(`^(go_|process_|promhttp_|accel_exporter_build_info|accel_source_age_seconds|accel_source_round_duration_seconds|accel_source_rounds_total|accel_source_rejected_values_total|accel_native_call_errors_total|accel_pcie_\w+_bytes_total|\S*_timestamp_seconds\b)`)

// hidden matches the families whose series depend on the build or the process
// instead of the scenario. The golden files do not have them.
var hidden = regexp.MustCompile(`^(# (HELP|TYPE) )?(go_|process_|promhttp_|accel_exporter_build_info|accel_source_worker_resident_memory_bytes)`)

// ownLog matches the path of the test's copy of a kernel log.
var ownLog = regexp.MustCompile(`path="[^"]*/state\.kmsg"`)

// normalise removes the parts of a page that differ from run to run.
func normalise(page string) string {
	page = ownLog.ReplaceAllString(page, `path="LOG"`)
	var b strings.Builder
	for line := range strings.Lines(page) {
		if hidden.MatchString(line) {
			continue
		}
		if volatile.MatchString(line) {
			line = line[:strings.LastIndexByte(line, ' ')] + " VOLATILE\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestGolden runs the exporter with its worker on every scenario, with a stopped
// clock, and compares the metrics page with the golden file.
func TestGolden(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob("../../fixtures/scenarios/*.yaml")
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range scenarios {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
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
	for name, most := range map[string]int{"h100-8": 900, "b200-8": 1100, "gb200-4": 0, "h100-mig-16x7": 0, "mixed-node": 0, "one-lost": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, name, []string{"--frozen=600"}, "--health.catalogue="+patient(t), configured(t, "metrics: {detail: standard}"))
			lint(t, settleAs(n, name+".standard.metrics", normalise))
			if _, standard, _ := n.series(); most > 0 && standard > most {
				t.Errorf("%d series, at most %d are wanted", standard, most)
			}
		})
	}
}

// patient writes a catalogue with a long wait for pci_not_responding. The golden
// pages show a node's first seconds, and a slow machine takes longer.
func patient(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "catalogue.yml")
	if err := os.WriteFile(file, []byte("conditions:\n  - {reason: pci_not_responding, for: 24h}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
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
		rounds := roundsMade.FindString(page)
		if rounds == "" {
			return strings.Contains(page, "accel_source_up{")
		}
		seen[rounds]++
		return len(seen) >= settledAfter
	}, func() string { return "rounds" })
	return page
}

// settleAs compares the settled page, reduced, with a golden file. A page that differs
// gets more rounds: on a busy machine the second sample of activity comes late.
func settleAs(n *node, name string, reduce func(string) string) string {
	n.t.Helper()
	file := filepath.Join("testdata", "golden", name)
	page := settle(n)
	rounds := map[string]bool{}
	for polls := 0; !golden.Matches(file, reduce(page)) && len(rounds) < 10*settledAfter && polls < 1000; polls++ {
		time.Sleep(pollInterval)
		_, page = n.get("/metrics")
		rounds[roundsMade.FindString(page)] = true
	}
	golden.Compare(n.t, file, reduce(page))
	return page
}

// settledAfter is the number of rounds after which the page of a node with a
// stopped clock is complete.
const settledAfter = 6

// roundsMade matches the round counter of the source nvidia if it is not 0.
var roundsMade = regexp.MustCompile(`(?m)^accel_source_rounds_total\{outcome="(ok|partial)",source="nvidia"\} [1-9]\d*$`)
