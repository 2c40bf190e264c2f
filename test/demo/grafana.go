package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

// grafanaHome is where packages of Grafana put what it serves.
const grafanaHome = "/usr/share/grafana"

const (
	grafanaSource = `apiVersion: 1
datasources: [{name: Prometheus, type: prometheus, access: proxy, url: "http://%s", isDefault: true}]
`
	grafanaDashboards = `apiVersion: 1
providers: [{name: accel-exporter, type: file, options: {path: %q}}]
`
)

// startGrafana starts an installed Grafana with the dashboards, with anonymous access on
// loopback. Its error is exec.ErrNotFound if it is not installed.
func (d *demo) startGrafana(ctx context.Context) (*stack.Process, error) {
	program, err := exec.LookPath("grafana")
	args := []string{"server", "--homepath=" + grafanaHome}
	if err != nil {
		if program, err = exec.LookPath("grafana-server"); err != nil {
			return nil, exec.ErrNotFound
		}
		args = args[1:]
	}
	provisioning := filepath.Join(d.dir, "grafana", "provisioning")
	for path, content := range map[string]string{
		"datasources/prometheus.yaml": fmt.Sprintf(grafanaSource, d.prometheus),
		"dashboards/accel.yaml":       fmt.Sprintf(grafanaDashboards, filepath.Join(d.root, "dashboards")),
	} {
		path = filepath.Join(provisioning, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	host, port, err := net.SplitHostPort(d.grafana)
	if err != nil {
		return nil, err
	}
	p, err := stack.Start(filepath.Join(d.dir, "grafana.log"), []string{
		"GF_PATHS_DATA=" + filepath.Join(d.dir, "grafana"), "GF_PATHS_LOGS=" + filepath.Join(d.dir, "grafana"),
		"GF_PATHS_PROVISIONING=" + provisioning, "GF_SERVER_HTTP_ADDR=" + host, "GF_SERVER_HTTP_PORT=" + port,
		"GF_AUTH_ANONYMOUS_ENABLED=true", "GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer", "GF_ANALYTICS_REPORTING_ENABLED=false",
		"GF_ANALYTICS_CHECK_FOR_UPDATES=false",
	}, program, args...)
	if err != nil {
		return nil, err
	}
	if err := p.Ready(ctx, "http://"+d.grafana+"/api/health"); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}
