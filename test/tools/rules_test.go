package tools

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestRules: Prometheus loads every rule file and evaluates every rule without
// an error, and an alert comes to Alertmanager, with its shipped configuration,
// with the labels that were promised.
func TestRules(t *testing.T) {
	alertmanager := program(t, "ALERTMANAGER")
	dir := t.TempDir()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `accel_device_health_reason{device="GPU-1",reason="device_lost",severity="failed"} 1
accel_allocation_info{device="GPU-1",namespace="team",pod="a",container="c",resource="nvidia.com/gpu"} 1
accel_allocation_info{device="GPU-1",namespace="team",pod="b",container="c",resource="nvidia.com/gpu"} 1
accel_allocation_unhealthy{device="GPU-1",namespace="team",pod="a",container="c",resource="nvidia.com/gpu"} 1
accel_allocation_unhealthy{device="GPU-1",namespace="team",pod="b",container="c",resource="nvidia.com/gpu"} 1
`)
	}))
	defer page.Close()

	am := freeAddress(t)
	start(t, am, alertmanager,
		"--config.file="+filepath.Join(root, "deploy/prometheus/alertmanager.yml"),
		"--storage.path="+filepath.Join(dir, "alertmanager"),
		"--web.listen-address="+am, "--cluster.listen-address=")

	want := copyRules(t, dir)
	p := startPrometheus(t, dir, `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ['`+filepath.Join(dir, "*.yaml")+`']
alerting: {alertmanagers: [{static_configs: [{targets: ['`+am+`']}]}]}
scrape_configs:
  - job_name: accel-exporter
    honor_labels: true
    static_configs: [{targets: ['`+strings.TrimPrefix(page.URL, "http://")+`'], labels: {instance: n1}}]
`)
	eventually(t, "every rule is evaluated", func() error { return healthy("http://"+string(p), want) })
	for _, pod := range []string{"a", "b"} {
		eventually(t, "the alert with pod "+pod+" is at Alertmanager", func() error {
			return sent("http://"+am, map[string]string{
				"alertname": "AcceleratorLost", "severity": "critical", "job": "accel-exporter",
				"instance": "n1", "device": "GPU-1", "namespace": "team", "pod": pod,
			})
		})
	}
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

// healthy returns an error as long as Prometheus lacks a rule, or has one that
// it has not evaluated or could not.
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
// labels.
func sent(alertmanager string, want map[string]string) error {
	var alerts []struct{ Labels map[string]string }
	if err := getJSON(alertmanager+"/api/v2/alerts", &alerts); err != nil {
		return err
	}
	for _, a := range alerts {
		if maps.Equal(a.Labels, want) {
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
