package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// empty is what has no data in this test, with the reason.
var empty = map[string]string{
	"accel-fleet: Devices by pool and model: C":            "nothing is idle for so long that it counts",
	"accel-fpga: Transactions: A":                          "counting needs performance counters that are not simulated",
	"accel-workload: From allocation to first activity: A": "no pod begins to use its device",
}

// TestDashboards asks a Prometheus that scrapes simulated nodes, with faults
// and pods, every query of every dashboard. None may fail, and none may be
// empty without a reason. There is no label cluster here: a
// dashboard must work without.
func TestDashboards(t *testing.T) {
	boards := loadBoards(t)
	p, inject := scraped(t)

	// There is a past, and rules are evaluated.
	p.awaits(t, `min(count_over_time(accel_source_up[10m])) > 10`)
	p.awaits(t, `pool_model:accel_devices:count`)
	inject()

	missing := map[string]string{}
	for _, b := range boards {
		for _, q := range b.asks() {
			missing[q.name] = q.expr
		}
	}
	deadline := time.Now().Add(2 * patience)
	for first := true; ; first = false {
		for _, b := range boards {
			b.fill(t, p, missing, first)
		}
		if t.Failed() || len(missing) <= len(empty) || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Second)
	}
	for name, expr := range missing {
		if empty[name] == "" {
			t.Errorf("%s: nothing: %s", name, expr)
		}
	}
	for name := range empty {
		if missing[name] == "" {
			t.Errorf("%s is excused and has data, or is no query", name)
		}
	}
}

// fill takes the queries that have an answer from those that have none yet. It
// asks the others too where every query has a result.
func (b board) fill(t *testing.T, p prom, missing map[string]string, all bool) {
	t.Helper()
	ways := b.choices(t, p)
	for _, q := range b.asks() {
		for _, way := range ways {
			if missing[q.name] == "" && !all {
				break
			}
			n, err := p.series(q, expanded(q.expr, way))
			if err != nil {
				t.Errorf("%s with %v: %v: %s", q.name, way, err, q.expr)
				break
			}
			if n > 0 {
				delete(missing, q.name)
			}
		}
	}
}

// scraped starts exporters and a Prometheus with the rules, and returns what
// lets the faults happen.
func scraped(t *testing.T) (prom, func()) {
	t.Helper()
	program(t, "PROMETHEUS")
	dir := t.TempDir()
	var targets strings.Builder
	var faults []func()
	for _, n := range nodes {
		at, inject := n.run(t)
		labels := "instance: " + n.name + ", pool: mixed"
		if n.name != "n3" { // the label node may be missing
			labels += ", node: " + n.name
		}
		fmt.Fprintf(&targets, "      - {targets: ['%s'], labels: {%s}}\n", at, labels)
		faults = append(faults, func() {
			for _, f := range n.faults {
				inject(f)
			}
		})
	}
	copyRules(t, dir)
	p := startPrometheus(t, dir, `global: {scrape_interval: 1s, evaluation_interval: 2s}
rule_files: ['`+filepath.Join(dir, "*.yaml")+`']
scrape_configs:
  - job_name: accel-exporter
    honor_labels: true
    static_configs:
`+targets.String()+`  - job_name: beside
    honor_labels: true
    static_configs: [{targets: ['`+beside(t)+`']}]
  - job_name: accel-remediator
    honor_labels: true
    static_configs: [{targets: ['`+remedied(t)+`']}]
`)
	return p, func() {
		for _, f := range faults {
			f()
		}
	}
}
