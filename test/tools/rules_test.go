package tools

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

const root = "../.."

// TestRules: Prometheus loads every rule file and evaluates every rule without
// an error, and an alert comes to Alertmanager, with its shipped configuration,
// with the labels that were promised.
func TestRules(t *testing.T) {
	alertmanager := program(t, "ALERTMANAGER")
	dir := t.TempDir()
	page := served(t, func() string {
		return `accel_device_incident_timestamp_seconds{device="GPU-1",kind="failed",summary="GPU 1 failed (Xid 79): team/a and 1 more. Cordon, save the kernel log, reboot.",pods="team/a team/b"} 1
`
	})
	shipped, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/alertmanager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	am, url, err := stack.Alertmanager(t.Context(), alertmanager, t.TempDir(), "127.0.0.1:0", shipped)
	if err != nil {
		t.Fatal(err)
	}
	ended(t, am)

	want := copyRules(t, dir)
	p := startPrometheus(t, dir, scrapes("accel-exporter", page, "node: n1", `rule_files: ['`+filepath.Join(dir, "*.yaml")+`']
alerting: {alertmanagers: [{static_configs: [{targets: ['`+strings.TrimPrefix(url, "http://")+`']}]}]}
`))
	eventually(t, "every rule is evaluated", func() error { return healthy("http://"+string(p), want) })
	eventually(t, "the alert is at Alertmanager", func() error {
		return sent(url, map[string]string{"alertname": "AcceleratorFailed", "severity": "critical", "node": "n1", "device": "GPU-1"},
			"n1 GPU 1 failed (Xid 79): team/a and 1 more. Cordon, save the kernel log, reboot.")
	})
}

// copyRules copies the rule files without the intervals of their groups, so
// that no rule makes the test wait, and returns the names of the rules.
func copyRules(t *testing.T, dir string) []string {
	t.Helper()
	interval := regexp.MustCompile(`(?m)^    interval: .*\n`)
	name := regexp.MustCompile(`(?m)^      - (?:alert|record): (.+)$`)
	paths, err := filepath.Glob(filepath.Join(root, "rules/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d rule files, %v", len(paths), err)
	}
	var names []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllSubmatch(data, -1) {
			names = append(names, string(m[1]))
		}
		write(t, filepath.Join(dir, filepath.Base(path)), interval.ReplaceAllString(string(data), ""))
	}
	slices.Sort(names)
	return names
}

// healthy returns an error as long as Prometheus lacks a rule, or has a rule
// that it has not evaluated or could not evaluate.
func healthy(prometheus string, want []string) error {
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := getJSON(prometheus+"/api/v1/rules", &answer); err != nil {
		return err
	}
	var names []string
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				return fmt.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
			}
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		return fmt.Errorf("%d rules, want %d", len(names), len(want))
	}
	return nil
}

// sent returns an error unless Alertmanager has an alert with exactly these
// labels, and the summary.
func sent(alertmanager string, want map[string]string, summary string) error {
	var alerts []struct{ Labels, Annotations map[string]string }
	if err := getJSON(alertmanager+"/api/v2/alerts", &alerts); err != nil {
		return err
	}
	for _, a := range alerts {
		if maps.Equal(a.Labels, want) && a.Annotations["summary"] == summary {
			return nil
		}
	}
	return fmt.Errorf("alerts are %v", alerts)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
