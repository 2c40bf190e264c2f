package main

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/exporter-toolkit/web"
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
		"bad.yml":     "alertmanager:\n  queue_size: 0\ncollect:\n  interval: soon\n",
		"list.csv":    "DCGM_FI_DEV_GPU_TEMP; gauge; Heat\n",
		"headers.yml": "authorization: [hunter2]\n",
		"key.yml":     "tls_server_config:\n  cert_fil: x",
		"tls.yml":     "tls_server_config:\n  cert: x\n  min_version: TLS9",
		"tab.yml":     "basic_auth_users:\n\ta: b",
		"users.yml":   "basic_auth_users:\n  prometheus: hunter2\n",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	const badConfig = "DIR/bad.yml:2: alertmanager.queue_size: found the number 0; accepted is a whole number, from 1 to 100000\nDIR/bad.yml:4: collect.interval: "
	// A program that accepts its flags ends at once.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for args, want := range map[string]string{
		"--collect.interval=1":                                         `--collect.interval is "1"; a duration such as 500ms, 10s, 24h or 7d is accepted`,
		"--collector.nvidia.timeout=1d":                                `--collector.nvidia.timeout is 24h0m0s; 100ms to 5m is accepted`,
		"--web.max-requests=many":                                      `--web.max-requests is "many"; a whole number is accepted`,
		"--metrics.detail=some":                                        `--metrics.detail is "some"; standard, full are accepted`,
		"--log.level=loud":                                             `--log.level is "loud"; debug, info, warn, error are accepted`,
		"--web.enable-release=yes":                                     `--web.enable-release is "yes"; --web.enable-release and --no-web.enable-release are accepted`,
		"--collect.intervall=1s":                                       `no flag --collect.intervall; did you mean --collect.interval?`,
		"--no-colector.nvidia":                                         `no flag --no-colector.nvidia; did you mean --no-collector.nvidia?`,
		"whoo":                                                         `unexpected argument "whoo"; did you mean who?`,
		"rules chek x":                                                 `did you mean check?`,
		"who --ulr=x":                                                  `did you mean --url?`,
		"--node.label==bar":                                            `--node.label is "=bar"; NAME=VALUE is accepted`,
		"--node.label=a=1 --node.label=a=2":                            `--node.label is "a=2"; each name is accepted once, and there is a=1 already`,
		"--path.sysfs=/nope":                                           `--path.sysfs: stat /nope: no such file`,
		"--path.procfs=/nope --path.devfs=/dev/null":                   "--path.procfs: stat /nope: no such file or directory\n--path.devfs: /dev/null is not a directory",
		"--collector.dcgm":                                             `--collector.dcgm needs --dcgm.address or --dcgm.embedded`,
		"--dcgm.address=localhost:5555 --dcgm.embedded":                `--dcgm.address and --dcgm.embedded are both set`,
		"--dcgm.address=http://x":                                      `unknown scheme; accepted: HOST:PORT`,
		"--dcgm.embedded --dcgm.watch-interval=1ms":                    `--dcgm.watch-interval is 1ms; 100ms to 5m is accepted`,
		"--dcgm.embedded --dcgm.health-interval=1s":                    `--dcgm.health-interval is 1s; 10s to 1h is accepted`,
		"--dcgm.embedded --dcgm.profiling=maybe":                       `auto, on, off are accepted`,
		"--dcgm.fields=DIR/list.csv":                                   `DIR/list.csv:1:1: 1 columns; accepted are three`,
		"--config.check --dcgm.fields=DIR/list.csv":                    `DIR/list.csv:1:1: 1 columns; accepted are three`,
		"--compat.hpc-jobs=/run/jobs":                                  `--compat.hpc-jobs needs --compat.dcgm-exporter`,
		"--compat.pod-uid":                                             `need --kubernetes.pods`,
		"--compat.pod-label=app":                                       `need --kubernetes.pods`,
		"--kubernetes.pods --compat.pod-label=(":                       `--compat.pod-label: error parsing regexp`,
		"--compat.hostname-label=host":                                 `--compat.hostname-label is "host"; hostname, Hostname or none`,
		"--compat.dcgm-exporter -c fast":                               `-c is "fast"; milliseconds`,
		"--web.telemetry-path=/debug/state":                            `telemetry-path`,
		"--web.telemetry-path=/{":                                      `telemetry-path`,
		"--web.config.file=DIR/key.yml":                                `DIR/key.yml:2: tls_server_config.cert_fil: unknown key (did you mean cert_file?)`,
		"--web.config.file=DIR/tls.yml":                                `DIR/tls.yml:3: tls_server_config.min_version: found "TLS9"; accepted is one of TLS10, TLS11, TLS12, TLS13`,
		"--web.config.file=DIR/tab.yml":                                `DIR/tab.yml:2: is not YAML: found a tab at the start of the line; accepted are spaces`,
		"--web.config.file=DIR/users.yml":                              `DIR/users.yml: crypto/bcrypt: hashedSecret too short`,
		"--collect.interval=1ms":                                       `100ms to 10m`,
		"--config.check":                                               `--config.file`,
		"--config.file=DIR/bad.yml":                                    badConfig,
		"--config.check --config.file=DIR/bad.yml":                     badConfig,
		"--config.file=DIR/none.yml":                                   `configuration: open DIR/none.yml: no such file or directory`,
		"--release.directory=DIR/bad.yml":                              `--release.directory: DIR/bad.yml is not a directory`,
		"--path.state=DIR/bad.yml":                                     `--path.state: open DIR/bad.yml: not a directory`,
		"--rules.builtin --rules.file=x.yml":                           `--rules.builtin evaluates the built-in rules, which --rules.file replaces: give one of them`,
		"--alertmanager.url=http://user:hunter2@h:9093":                `--alertmanager.url: found a user or a password in the address`,
		"--otlp.endpoint=collector":                                    `--otlp.endpoint is not an address`,
		"--otlp.headers-file=DIR/headers.yml":                          `need --otlp.endpoint`,
		"--otlp.endpoint=http://h --otlp.ca-file=DIR/headers.yml":      `begins with https`,
		"--otlp.endpoint=http://h --otlp.pod-annotation=a=b":           `--otlp.pod-annotation: annotation "a=b"`,
		"--otlp.endpoint=http://h --otlp.headers-file=DIR/headers.yml": `DIR/headers.yml: is no YAML map of headers`,
		"--otlp.endpoint=http://h --otlp.headers-file=DIR/headers.yml --config.check":                               `DIR/headers.yml: is no YAML map of headers`,
		"--otlp.endpoint=https://h --otlp.ca-file=DIR/headers.yml --config.check":                                   `no certificate`,
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
	for args, want := range map[string]string{"version": "accel-exporter, version", "help": "--collect.interval", "help who": "--url", "help rules check": "FILE"} {
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
	writeFile(t, filepath.Join(dir, "nvidai"), "")
	args := []string{
		"--kernel-log.path=/nope/kmsg", "--podresources.socket=/nope/kubelet.sock", "--otlp.endpoint=http://127.0.0.1:1",
		"--otlp.pod-annotation=a", configured(t, "collect: {interval: 2s}"), "--rules.file=" + rules, "--release.directory=" + dir,
	}
	wants := []string{
		"--kernel-log.path: /nope/kmsg does not exist yet", "--podresources.socket: /nope/kubelet.sock does not exist yet",
		"--otlp.pod-annotation has no effect without --kubernetes.pods",
		"rules.yml:4: A: unknown metric accel_device_upp; did you mean accel_device_up?",
	}
	n := startExporter(t, args...)
	n.log.await(regexp.MustCompile("File in the release directory releases nothing.*did you mean nvidia"))
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
}

// TestWebConfigForm checks that the form of a web configuration is that of the toolkit.
func TestWebConfigForm(t *testing.T) {
	t.Parallel()
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
