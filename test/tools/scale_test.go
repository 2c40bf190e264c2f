package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestScale runs the example configurations of deploy/prometheus/scale against a
// central Prometheus: an agent sends every series of the devices, a shard aggregates
// and alerts only.
func TestScale(t *testing.T) {
	program(t, "PROMETHEUS")
	page := strings.ReplaceAll(recordedPage(t, "h100-8.standard.metrics"), " VOLATILE\n", " 1\n") +
		`accel_device_incident_timestamp_seconds{device="GPU-1",kind="failed"} 1` + "\n"
	node := served(t, func() string { return page })
	for _, c := range []struct {
		file       string
		agent      bool
		has, lacks []string
	}{
		{
			file: "agent.yml", agent: true,
			has:   []string{`accel_device_health{state="healthy",pool="training",node="n1",instance="n1:19400",cluster="c"}`},
			lacks: []string{`go_goroutines{job="accel-exporter"}`},
		},
		{
			file:  "shard.yml",
			has:   []string{`pool_model:accel_devices:count{pool="training",cluster="c"} == 8`, `ALERTS{alertname="AcceleratorFailed",device="GPU-1",node="n1"}`},
			lacks: []string{`{__name__=~"accel_.+"}`, `{__name__=~"device.*:.+"}`},
		},
	} {
		t.Run(c.file, func(t *testing.T) {
			dir := t.TempDir()
			central := startPrometheus(t, t.TempDir(), "{}\n", "--web.enable-remote-write-receiver")
			copyRules(t, dir)
			var flags []string
			if c.agent {
				flags = []string{"--storage.agent.path=" + filepath.Join(dir, "data"), "--enable-feature=agent"}
			}
			startPrometheus(t, dir, onOneNode(t, c.file, dir, node, string(central)), flags...)
			for _, expr := range c.has {
				central.awaits(t, expr)
			}
			for _, expr := range c.lacks {
				if a, err := central.instant(expr); err != nil || len(a.Data.Result) > 0 {
					t.Errorf("the central server has %d series of %s, %v", len(a.Data.Result), expr, err)
				}
			}
		})
	}
}

// onOneNode returns an example configuration with its placeholders replaced: one
// pod with the labels that Kubernetes' service discovery gives it, and short
// intervals.
func onOneNode(t *testing.T, file, dir, node, central string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/scale", file))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("CLUSTER", "c", "POOL", "training", "30s", "1s", "/etc/prometheus/accel/*.yaml", filepath.Join(dir, "*.yaml"),
		"http://central:9009/api/v1/push", "http://"+central+"/api/v1/write").Replace(string(data))
	var cfg map[string]any
	if err := yaml.Unmarshal([]byte(text), &cfg); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	delete(cfg, "alerting")
	job := cfg["scrape_configs"].([]any)[0].(map[string]any)
	delete(job, "kubernetes_sd_configs")
	job["static_configs"] = []any{map[string]any{"targets": []string{node}, "labels": map[string]string{
		"__meta_kubernetes_pod_label_app_kubernetes_io_name": "accel-exporter",
		"__meta_kubernetes_pod_container_port_name":          "metrics",
		"__meta_kubernetes_pod_container_port_number":        "19400",
		"__meta_kubernetes_pod_node_name":                    "n1",
		"__meta_kubernetes_node_label_accelerator_pool":      "training",
	}}}
	out, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
