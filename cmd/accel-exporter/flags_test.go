package main

import (
	"context"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/exporter-toolkit/web"
)

// TestFlagMistakes checks that a mistake names the flag, its value, what is accepted
// and the nearest name.
func TestFlagMistakes(t *testing.T) {
	t.Parallel()
	// A program that accepts its flags ends at once.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for args, want := range map[string]string{
		"--collect.interval=1":                          `--collect.interval is "1"; a duration such as 500ms, 10s, 24h or 7d is accepted`,
		"--collector.nvidia.timeout=1d":                 `--collector.nvidia.timeout is 24h0m0s; 100ms to 5m is accepted`,
		"--web.max-requests=many":                       `--web.max-requests is "many"; a whole number is accepted`,
		"--metrics.detail=some":                         `--metrics.detail is "some"; standard, full are accepted`,
		"--log.level=loud":                              `--log.level is "loud"; debug, info, warn, error are accepted`,
		"--web.enable-release=yes":                      `--web.enable-release is "yes"; --web.enable-release and --no-web.enable-release are accepted`,
		"--collect.intervall=1s":                        `no flag --collect.intervall; did you mean --collect.interval?`,
		"--no-colector.nvidia":                          `no flag --no-colector.nvidia; did you mean --no-collector.nvidia?`,
		"whoo":                                          `unexpected argument "whoo"; did you mean who?`,
		"rules chek x":                                  `did you mean check?`,
		"who --ulr=x":                                   `did you mean --url?`,
		"--node.label==bar":                             `--node.label is "=bar"; NAME=VALUE is accepted`,
		"--node.label=a=1 --node.label=a=2":             `--node.label is "a=2"; each name is accepted once, and there is a=1 already`,
		"--path.sysfs=/nope":                            `--path.sysfs: stat /nope: no such file`,
		"--path.procfs=/nope --path.devfs=/dev/null":    "--path.procfs: stat /nope: no such file or directory\n--path.devfs: /dev/null is not a directory",
		"--collector.dcgm":                              `--collector.dcgm needs --dcgm.address or --dcgm.embedded`,
		"--dcgm.address=localhost:5555 --dcgm.embedded": `--dcgm.address and --dcgm.embedded are both set`,
		"--dcgm.address=http://x":                       `unknown scheme; accepted: HOST:PORT`,
		"--dcgm.embedded --dcgm.watch-interval=1ms":     `--dcgm.watch-interval is 1ms; 100ms to 5m0s is accepted`,
		"--dcgm.embedded --dcgm.health-interval=1s":     `--dcgm.health-interval is 1s; 10s to 1h0m0s is accepted`,
		"--dcgm.embedded --dcgm.profiling=maybe":        `auto, on, off are accepted`,
		"--compat.hpc-jobs=/run/jobs":                   `--compat.hpc-jobs needs --compat.dcgm-exporter`,
		"--web.telemetry-path=/debug/state":             `telemetry-path`,
		"--web.telemetry-path=/{":                       `telemetry-path`,
		"--collect.interval=1ms":                        `100ms to 10m`,
		"--config.check":                                `--config.file`,
		"--no-collector.nvidia --no-collector.amd --no-collector.fpga --no-collector.pcie --no-collector.kernellog": `no source is enabled`,
	} {
		err := command(ctx, strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", args, err, want)
		}
	}
}

// TestHelpAndVersion checks that help and version are commands.
func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"version": "accel-exporter, version", "help": "--collect.interval", "help who": "--url", "help rules check": "FILE"} {
		var out strings.Builder
		if err := command(t.Context(), strings.Fields(args), &out, io.Discard); exitCode(err) != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", args, err, &out)
		}
	}
}

// TestWarnings checks that flags without effect are warned of, at the start and by
// --config.check.
func TestWarnings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yml")
	writeFile(t, rules, "groups:\n- name: a\n  rules:\n  - {alert: A, expr: accel_device_upp == 0 and on () other_metric}\n  - {alert: B, expr: 'accel_device_up == 0 or accel_rules_any'}\n")
	writeFile(t, filepath.Join(dir, "nvidai"), "")
	args := []string{
		"--kernel-log.path=/nope/kmsg", "--podresources.socket=/nope/kubelet.sock", "--otlp.endpoint=http://127.0.0.1:1",
		"--otlp.pod-annotation=a", "--rules.file=" + rules, "--release.directory=" + dir,
	}
	wants := []string{
		"--kernel-log.path: /nope/kmsg does not exist yet", "--podresources.socket: /nope/kubelet.sock does not exist yet",
		"--otlp.pod-annotation has no effect without --kubernetes.pods",
		"rules.yml:4: A: unknown metric accel_device_upp; did you mean accel_device_up?",
	}
	n := startExporter(t, args...)
	n.log.await(regexp.MustCompile("File in the release directory releases nothing.*did you mean nvidia"))
	var stderr strings.Builder
	if err := command(t.Context(), append(args, "--config.check"), io.Discard, &stderr); err != nil {
		t.Error(err)
	}
	if err := command(t.Context(), []string{"rules", "check", rules}, io.Discard, &stderr); err != nil {
		t.Error(err)
	}
	for _, want := range wants {
		if !strings.Contains(n.log.String(), want) || !strings.Contains(stderr.String(), want) {
			t.Errorf("no warning %q in\n%s\n%s", want, n.log, &stderr)
		}
	}
	if got := strings.Count(stderr.String(), "unknown metric"); got != 2 {
		t.Errorf("%d unknown metrics are reported:\n%s", got, &stderr)
	}
}

// TestWebConfigMistakes checks that mistakes in a web configuration have their line,
// and that the form is that of the toolkit.
func TestWebConfigMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tls_server_config:\n  cert_fil: x":                  `web.yml:2: tls_server_config.cert_fil: unknown key (did you mean cert_file?)`,
		"tls_server_config:\n  cert: x\n  min_version: TLS9": `web.yml:3: tls_server_config.min_version: found "TLS9"; accepted is one of TLS10, TLS11, TLS12, TLS13`,
		"basic_auth_users:\n\ta: b":                          `web.yml:2: is not YAML: found a tab at the start of the line; accepted are spaces`,
	} {
		file := tempFile(t, "web.yml", text)
		if err := checkWebConfig(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	if diff := cmp.Diff(yamlKeys(reflect.TypeFor[web.Config]()), yamlKeys(reflect.TypeFor[webConfig]())); diff != "" {
		t.Errorf("keys of the toolkit (-) and here (+):\n%s", diff)
	}
}

// yamlKeys returns the keys of a section and of those in it.
func yamlKeys(t reflect.Type) map[string]any {
	keys := map[string]any{}
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		keys[key] = nil
		if f.Type.Kind() == reflect.Struct {
			keys[key] = yamlKeys(f.Type)
		}
	}
	return keys
}
