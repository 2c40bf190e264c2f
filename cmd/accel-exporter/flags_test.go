package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// outcome runs a command line to its end.
func outcome(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errs strings.Builder
	err = command(ctx, args, &out, &errs)
	return out.String(), errs.String(), err
}

// TestFlagMistakes checks that a mistake names the flag, its value, what is accepted
// and the nearest name, or the file with the line, and prints no secret.
func TestFlagMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"bad.yml":     "devices:\n  forget_after: 0\ncollect:\n  interval: soon\n",
		"list.csv":    "DCGM_FI_DEV_GPU_TEMP; gauge; Heat\n",
		"headers.yml": "authorization: [hunter2]\n",
		"shadow":      "root:$6$hunter2:19000:0:99999:7:::\n",
		"key.yml":     "tls_server_config:\n  cert_fil: x",
		"tls.yml":     "tls_server_config:\n  cert: x\n  min_version: TLS9",
		"tab.yml":     "basic_auth_users:\n\ta: b",
		"users.yml":   "basic_auth_users:\n  prometheus: hunter2\n",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	const badConfig = "DIR/bad.yml:2: devices.forget_after: found the number 0; accepted is a duration such as 500ms, 10s, 24h or 7d, from 1m to 720h\nDIR/bad.yml:4: collect.interval: "
	// A program that accepts its flags ends at once.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for args, want := range map[string]string{
		"--collect.interval=1":   `--collect.interval is "1"; a duration such as 500ms, 10s, 24h or 7d is accepted`,
		"--metrics.detail=ful":   `--metrics.detail is "ful"; accepted are standard, full; did you mean full?`,
		"--log.level=loud":       `--log.level is "loud"; unrecognized log level`,
		"--web.status-page=yes":  `unexpected yes`,
		"--collect.intervall=1s": `unknown long flag '--collect.intervall'; did you mean --collect.interval?`,
		"--no-colector.nvidia":   `unknown long flag '--no-colector.nvidia'; did you mean --no-collector.nvidia?`,
		"whoo":                   `unexpected whoo; did you mean who?`,
		"rules chek x":           `expected command but got "chek"; did you mean check?`,
		"who --ulr=x":            `unknown long flag '--ulr'; did you mean --url?`,
		"--node.label==bar":      `--node.label is "=bar"; NAME=VALUE is accepted`,
		"--path.sysfs=/nope":     `--path.sysfs: stat /nope: no such file`,
		"--path.procfs=/nope --path.devfs=/dev/null":    "--path.procfs: stat /nope: no such file or directory\n--path.devfs: /dev/null is not a directory",
		"--collector.dcgm":                              `--collector.dcgm needs --dcgm.address or --dcgm.embedded`,
		"--dcgm.address=localhost:5555 --dcgm.embedded": `--dcgm.address and --dcgm.embedded are both set`,
		"--dcgm.address=http://x":                       `unknown scheme; accepted: HOST:PORT`,
		"--dcgm.embedded --dcgm.watch-interval=1ms":     `--dcgm.watch-interval is 1ms; 100ms to 5m is accepted`,
		"--dcgm.embedded --dcgm.health-interval=1s":     `--dcgm.health-interval is 1s; 10s to 1h is accepted`,
		"--dcgm.embedded --dcgm.profiling=maybe":        `accepted are auto, on, off`,
		"--dcgm.fields=DIR/list.csv":                    `DIR/list.csv:1:1: 1 columns; accepted are three`,
		"--config.check --dcgm.fields=DIR/list.csv":     `DIR/list.csv:1:1: 1 columns; accepted are three`,
		"--compat.dcgm-exporter --kubernetes-enable-pod-labels --kubernetes-pod-label-allowlist-regex=(": `--kubernetes-pod-label-allowlist-regex: error parsing regexp`,
		"--compat.hostname-label=host":                                                `--compat.hostname-label is "host"; accepted are hostname, Hostname, none`,
		"--compat.dcgm-exporter -c fast":                                              `-c is "fast"; milliseconds`,
		"--web.listen-address=abc":                                                    `--web.listen-address is "abc"; HOST:PORT, :PORT or vsock://:PORT is accepted`,
		"--web.config.file=DIR/key.yml":                                               `line 2: field cert_fil not found in type web.TLSConfig`,
		"--web.config.file=DIR/shadow":                                                "line 1: field … not found in type web.Config",
		"--config.file=DIR/shadow":                                                    `DIR/shadow:1: found a key that is not a name; accepted here: alert`,
		"--web.config.file=DIR/tls.yml":                                               `DIR/tls.yml: unknown TLS version: TLS9`,
		"--web.config.file=DIR/tab.yml":                                               `DIR/tab.yml: yaml: line 2: found character that cannot start any token`,
		"--web.config.file=DIR/users.yml":                                             `DIR/users.yml:2: basic_auth_users.prometheus: found no bcrypt hash`,
		"--collect.interval=1ms":                                                      `100ms to 10m`,
		"--config.file=DIR/bad.yml":                                                   badConfig,
		"--config.check --config.file=DIR/bad.yml":                                    badConfig,
		"--config.file=DIR/none.yml":                                                  `configuration: open DIR/none.yml: no such file or directory`,
		"--release.directory=DIR/bad.yml":                                             `--release.directory: DIR/bad.yml is not a directory`,
		"--path.state=DIR/bad.yml":                                                    `--path.state: open DIR/bad.yml: not a directory`,
		"--rules.target-label=1x=a":                                                   `--rules.target-label: "1x" is no label name`,
		"--rules.builtin --rules.file=x.yml":                                          `--rules.builtin evaluates the built-in rules, which --rules.file replaces: give one of them`,
		"--alertmanager.url=http://user:hunter2@h:9093":                               `--alertmanager.url: found a user or a password in the address`,
		"--otlp.endpoint=collector":                                                   `--otlp.endpoint is not an address`,
		"--otlp.headers-file=DIR/headers.yml":                                         `need --otlp.endpoint`,
		"--otlp.endpoint=http://h --otlp.ca-file=DIR/headers.yml":                     `begins with https`,
		"--otlp.endpoint=http://h --otlp.headers-file=DIR/headers.yml":                `DIR/headers.yml: is no YAML map of headers`,
		"--otlp.endpoint=http://h --otlp.headers-file=DIR/headers.yml --config.check": `DIR/headers.yml: is no YAML map of headers`,
		"--otlp.endpoint=https://h --otlp.ca-file=DIR/headers.yml --config.check":     `no certificate`,
		"--no-collector.nvidia --no-collector.amd --no-collector.fpga --no-collector.pcie --no-collector.kernellog": `no source is enabled`,
	} {
		words := strings.Fields(strings.ReplaceAll(args, "DIR", dir))
		if strings.HasPrefix(args, "--") {
			words = append(words, isolated(t, words)...)
		}
		_, printed, err := outcome(ctx, words...)
		text := fmt.Sprint(printed, err)
		if err == nil || !strings.Contains(text, strings.ReplaceAll(want, "DIR", dir)) || strings.Contains(text, "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", args, text, want)
		}
	}
}

// TestHelpAndVersion checks that help and version are commands.
func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"version": "accel-exporter, version", "--config.check": "flags: ok", "help": "--config.file", "help who": "--url", "help rules check": "FILE"} {
		if out, _, err := outcome(t.Context(), strings.Fields(args)...); exitCode(err) != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", args, err, out)
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
	args := []string{
		"--kernel-log.path=/nope/kmsg", "--podresources.socket=/nope/kubelet.sock", "--otlp.endpoint=http://127.0.0.1:1",
		"--rules.file=" + rules, "--release.directory=" + dir,
	}
	wants := []string{
		"--kernel-log.path: /nope/kmsg does not exist yet", "--podresources.socket: /nope/kubelet.sock does not exist yet",
		"rules.yml:4: A: unknown metric accel_device_upp; did you mean accel_device_up?",
	}
	n := startExporter(t, args...)
	_, warned, err := outcome(t.Context(), append(args, "--config.check")...)
	_, unknown, other := outcome(t.Context(), "rules", "check", rules)
	if err != nil || other != nil {
		t.Error(err, other)
	}
	for _, want := range wants {
		if !strings.Contains(n.log.String(), want) || !strings.Contains(warned, want) {
			t.Errorf("no warning %q in\n%s\n%s", want, n.log, warned)
		}
	}
	if strings.Count(warned, "unknown metric") != 1 || strings.Count(unknown, "unknown metric") != 1 {
		t.Errorf("unknown metrics:\n%s\n%s", warned, unknown)
	}
	if lines := unknownMetrics(engine.Builtin()); len(lines) > 0 {
		t.Errorf("the built-in rules: %q", lines)
	}
}
