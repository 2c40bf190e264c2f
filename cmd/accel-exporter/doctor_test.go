package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// diagnose runs the doctor on a node, and returns its report without what differs
// between machines.
func diagnose(t *testing.T, state string, args ...string) (string, error) {
	t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--web.listen-address=") }) {
		args = append(args, "--web.listen-address=127.0.0.1:0")
	}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--podresources.socket=") }) {
		args = append(args, "--podresources.socket=")
	}
	args = append([]string{"doctor"}, append(args, isolated(t, args)...)...)
	text, stderr, err := outcome(t.Context(), args...)
	if stderr != "" {
		t.Error(stderr)
	}
	text = regexp.MustCompile(`^accel-exporter \S*, user \d+`).ReplaceAllString(text, "accel-exporter VERSION, user N")
	text = regexp.MustCompile(regexp.QuoteMeta(filepath.Dir(filepath.Dir(state)))+`/\d+`).ReplaceAllString(text, "DIR")
	return text, err
}

// TestDoctorGolden compares the doctor's report of every scenario with the golden
// file.
func TestDoctorGolden(t *testing.T) {
	t.Parallel()
	for _, name := range fixtureNames(t, "scenarios") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, flags := compile(t, name, "--frozen=600", "--no-pods")
			text, _ := diagnose(t, state, flags...)
			golden.Compare(t, filepath.Join("testdata", "doctor", name+".txt"), text)
		})
	}
}

// TestDoctorGoldenManifests does so for the command lines of the manifests on a node
// with eight H100. The paths that they mount exist and are empty. The chart with its
// defaults is the kustomization: TestKustomizations in test/deploy.
func TestDoctorGoldenManifests(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"chart-and-kustomize": manifestArgs(t, "kustomize/base/daemonset.yaml", `(?m)^ +- (--.*)$`),
		"systemd":             manifestArgs(t, "systemd/accel-exporter.service", `(?m)^ExecStart=\S+ (.*) \$ARGS$`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, flags := compile(t, "h100-8", "--frozen=600", "--no-pods")
			root := filepath.Join(filepath.Dir(state), "node")
			for _, a := range args {
				flag, path, _ := strings.Cut(a, "=")
				if strings.HasPrefix(path, "/") {
					path = filepath.Join(root, path)
					if err := os.MkdirAll(path, 0o755); err != nil {
						t.Fatal(err)
					}
					a = flag + "=" + path
				}
				if flag == "--web.listen-address" {
					a = flag + "=127.0.0.1:0"
				}
				flags = append(flags, a)
			}
			text, _ := diagnose(t, state, flags...)
			golden.Compare(t, filepath.Join("testdata", "doctor", "deploy-"+name+".txt"), text)
		})
	}
}

// manifestArgs returns the arguments that a pattern finds in a file of deploy.
func manifestArgs(t *testing.T, file, pattern string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(data), -1) {
		args = append(args, strings.Fields(m[1])...)
	}
	return args
}

// TestDoctorExit checks the exit status and the finding for each kind of lack.
func TestDoctorExit(t *testing.T) {
	t.Parallel()
	state, flags := compile(t, "h100-8", "--frozen=600", "--no-pods")
	bad := tempFile(t, "accel.yml", "collect: {intervall: 1s}\n")
	text, err := diagnose(t, state, append(flags, "--config.file="+bad,
		"--podresources.socket=/nope/kubelet.sock", "--kubernetes.pods")...)
	if !errors.Is(err, errPrinted) {
		t.Errorf("exit: %v", err)
	}
	for _, want := range []string{
		`LACKS +file +.*intervall: unknown key`, `off +source kubelet +No kubelet, or its socket is not mounted`, `LACKS +sampling +--kubernetes.pods`,
		`LACKS +flags +--podresources.socket: /nope/kubelet.sock does not exist yet`, `ok +source nvidia`, `(?m)^\d things are missing`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s does not match\n%s", want, text)
		}
	}
	for _, args := range [][]string{{"doctor", "--collect.interval=1"}, {"who", "--no-such"}, {"--collect.interval=1ns"}} {
		if _, _, err := outcome(t.Context(), args...); exitCode(err) != 2 {
			t.Errorf("bad use: %v: %v", args, err)
		}
	}
	if _, _, err := outcome(t.Context(), "doctor", "--url=http://127.0.0.1:1"); exitCode(err) != 1 || !strings.Contains(fmt.Sprint(err), "no exporter answers") {
		t.Errorf("nothing at --url: %v", err)
	}
	out, _, err := outcome(t.Context(), append([]string{"doctor", "--json", "--podresources.socket="}, flags...)...)
	var d diagnosis
	if bad := json.Unmarshal([]byte(out), &d); bad != nil || err != nil || d.Lacking != 0 || len(d.Findings) == 0 {
		t.Errorf("%v, %v\n%s", bad, err, out)
	}
}

// TestRefusedConfiguration: a file that is refused is on the status page, in the output of
// who and of doctor, with file, line and key, and without the value: it can be a password.
func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()
	state, flags := compile(t, "t4", "--no-pods")
	file := tempFile(t, "accel.yml", "collect: {interval: 1s}\n")
	n := startOn(t, state, append(flags, "--config.file="+file)...)
	n.until(`^accel_device_up\{device="GPU-.*\} 1`)
	shown := func() string {
		_, page := n.get("/")
		who, _, _ := outcome(t.Context(), "who", "--url="+n.url)
		doctor, _, _ := outcome(t.Context(), "doctor", "--url="+n.url)
		return "PAGE " + page + "\nWHO " + who + "\nDOCTOR " + doctor
	}
	writeFile(t, file, "collect:\n  interval: 1s\nalertmanager:\n  url_timeouts: 1\nallocation: {max_holders: hunter2}\n")
	n.until(`^accel_config_last_reload_successful 0$`)
	mistakes := regexp.QuoteMeta(file) + `:4: alertmanager.url_timeouts: unknown key.*` // and the next
	for _, want := range []string{
		`(?s)PAGE.*state warn">refused</span> <strong><bdi>configuration.*:4: alertmanager.url_timeouts.*:5: allocation.max_holders.*WHO`,
		`(?s)WHO.*configuration: ` + mistakes + `.*DOCTOR`, `(?s)DOCTOR.*LACKS +configuration +` + mistakes,
	} {
		if text := shown(); !regexp.MustCompile(want).MatchString(text) || strings.Contains(text, "hunter2") {
			t.Errorf("%s does not match\n%s", want, text)
		}
	}
	writeFile(t, file, "collect: {interval: 1s}\n")
	n.until(`^accel_config_last_reload_successful 1$`)
	if text := shown(); strings.Contains(text, "max_holders") || !strings.Contains(text, "ok     source nvidia") {
		t.Errorf("after the file is corrected\n%s", text)
	}
}
