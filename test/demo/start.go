package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

// start starts every program and prints where it is.
func (d *demo) start(ctx context.Context) error {
	for _, part := range []struct {
		name, url string
		start     func(context.Context) (*stack.Process, error)
	}{
		{"Alertmanager", "http://" + d.alertmanager, d.startAlertmanager},
		{"exporter", "http://" + d.exporter + "/metrics", d.startExporter},
		{"Prometheus", "http://" + d.prometheus, d.startPrometheus},
		{"Grafana", "http://" + d.grafana + "/dashboards", d.startGrafana},
	} {
		if d.only != "" && d.only != part.name {
			continue
		}
		p, err := part.start(ctx)
		switch {
		case errors.Is(err, exec.ErrNotFound) && part.name == "Grafana":
			d.print("%-13s is not installed; import dashboards/*.json elsewhere", part.name)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", part.name, err)
		}
		d.running = append(d.running, p)
		d.print("%-13s %s", part.name, part.url)
	}
	return nil
}

func (d *demo) startAlertmanager(ctx context.Context) (*stack.Process, error) {
	program, err := d.find("alertmanager/usr/bin/prometheus-alertmanager", "prometheus-alertmanager", "alertmanager")
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(d.root, "deploy/prometheus/alertmanager.yml"))
	if err != nil {
		return nil, err
	}
	p, _, err := stack.Alertmanager(ctx, program, d.dir, d.alertmanager, config)
	return p, err
}

// startExporter starts it on the simulated node, with the labels that
// Prometheus gives it, so that both send the same alerts.
func (d *demo) startExporter(ctx context.Context) (*stack.Process, error) {
	p, err := stack.Start(filepath.Join(d.dir, "exporter.log"), nil,
		filepath.Join(d.root, "bin/accel-sim"), "run", "--state="+d.state(), "--scenario="+d.scenario,
		"--library="+filepath.Join(d.root, "bin/sim/libnvidia-ml.so.1"), "--fixtures="+filepath.Join(d.root, "fixtures"), "--",
		filepath.Join(d.root, "bin/accel-exporter"), "--web.listen-address="+d.exporter, "--alertmanager.url=http://"+d.alertmanager,
		"--rules.target-label=instance="+d.exporter, "--web.external-url=http://"+d.exporter)
	if err != nil {
		return nil, err
	}
	if err := p.Ready(ctx, "http://"+d.exporter+"/-/ready"); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

const prometheusConfig = `global: {scrape_interval: 5s, evaluation_interval: 5s}
rule_files: [%q]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs:
  - job_name: accel-exporter
    honor_labels: true
    static_configs: [{targets: [%q]}]
`

func (d *demo) startPrometheus(ctx context.Context) (*stack.Process, error) {
	program, err := d.find("prometheus/usr/bin/prometheus", "prometheus")
	if err != nil {
		return nil, err
	}
	config := fmt.Appendf(nil, prometheusConfig, filepath.Join(d.root, "rules", "*.yaml"), d.alertmanager, d.exporter)
	return stack.Prometheus(ctx, program, d.dir, d.prometheus, config)
}

// find returns the program that make unpacked into .cache, else one of the
// names in PATH.
func (d *demo) find(unpacked string, names ...string) (string, error) {
	path, err := exec.LookPath(filepath.Join(d.root, ".cache", unpacked))
	for _, name := range names {
		if err == nil {
			break
		}
		path, err = exec.LookPath(name)
	}
	return path, err
}
