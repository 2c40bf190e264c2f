package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const chart = "deploy/helm/accel-exporter"

// pushed names the images, which every user of the chart must.
const pushed = "--set=image.repository=registry.example/accel-exporter,remediator.image.repository=registry.example/accel-remediator"

// operatorKinds are what a cluster with the Prometheus Operator reports.
var operatorKinds = []string{"PodMonitor", "ServiceMonitor", "PrometheusRule"}

// helm runs helm in the root of the repository.
func helm(args ...string) ([]byte, error) {
	program := os.Getenv("HELM")
	if program == "" {
		return nil, fmt.Errorf("HELM does not name helm; make test-deploy builds it")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, stderr.String()+stdout.String())
	}
	return stdout.Bytes(), nil
}

// render returns what the chart becomes with the values of a file of ci and
// further flags.
func render(values string, flags ...string) ([]byte, error) {
	return renderChart(chart, values, flags...)
}

// renderChart is render of the chart in a folder or a package.
func renderChart(path, values string, flags ...string) ([]byte, error) {
	args := []string{"template", "accel-exporter", path, "--namespace=accel-exporter", pushed}
	if values != "" {
		args = append(args, "--values="+filepath.Join(chart, "ci", values+"-values.yaml"))
	}
	for _, kind := range operatorKinds {
		args = append(args, "--api-versions=monitoring.coreos.com/v1/"+kind)
	}
	return helm(append(args, flags...)...)
}

var rendered sync.Map

// cases are the names of the files of ci.
func cases(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, path := range glob(t, chart+"/ci/*-values.yaml") {
		names = append(names, strings.TrimSuffix(filepath.Base(path), "-values.yaml"))
	}
	return names
}

// objects returns what the chart becomes with the values of a file of ci and further
// flags.
func objects(t *testing.T, values string, flags ...string) []object {
	t.Helper()
	key := fmt.Sprint(values, flags)
	once, _ := rendered.LoadOrStore(key, sync.OnceValues(func() ([]byte, error) { return render(values, flags...) }))
	out, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, out)
}

func TestLint(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := helm("lint", "--strict", chart, pushed, "--set=crdCheck=false", "--values="+filepath.Join(chart, "ci", name+"-values.yaml"))
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(string(out), "[WARNING]") {
				t.Errorf("%s", out)
			}
		})
	}
}

// TestRefused: errors for values that make no sense.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, flag, want string }{
		{"no image", "--set=image.repository=", "image.repository is empty"},
		{"no image of the remediator", "--set=" + remediatorOn + someRule + ",remediator.image.repository=", "remediator.image.repository is empty"},
		{"a misspelt value", "--set=podResource.enabled=false", "podResource"},
		{"a misspelt value of a section", "--set=kernelLog.mod=device", "mod"},
		{"an unknown mode", "--set=kernelLog.mode=yes", "/kernelLog/mode"},
		{"a port out of range", "--set=web.port=70000", "/web/port"},
		{"a relative folder", "--set=podResources.directory=pod-resources", "/podResources/directory"},
		{"an address that is no URL", "--set=nodeRules.alertmanagers={alertmanager:9093}", "/nodeRules/alertmanagers/0"},
		{"slices without pods", "--set=podMetadata.resourceSlices=true", "/podMetadata/enabled"},
		{"an argument without dashes", "--set=extraArgs={debug}", "/extraArgs/0"},
		{"two host engines", "--set=dcgm.address=localhost:5555,dcgm.embedded=true", "/dcgm/address"},
		{"a remediator without Alertmanagers", "--set=remediator.enabled=true", "remediator.alertmanagers is empty"},
		{"a Job that is not there", "--set=" + remediatorOn + someRule + ",remediator.policy.hooks.reset.job=/etc/accel-remediator/reset.yaml", "remediator.jobs has no reset.yaml"},
		{"a Job in another folder", "--set=" + remediatorOn + someRule + ",remediator.policy.hooks.reset.job=/tmp/reset.yaml", "hooks.reset.job is /tmp/reset.yaml"},
		{"a policy that is a part of one", "--set=" + remediatorOn + ",remediator.policy.settle=1m", "remediator.policy has no rules"},
		{"a policy whose rules are none", "--set=" + remediatorOn + ",remediator.policy.rules=evict", "/remediator/policy/rules"},
		{"no remediator at all", "--set=" + remediatorOn + ",remediator.replicas=0", "/remediator/replicas"},
		{"an OTLP endpoint that is no URL", "--set=traces.endpoint=collector:4317", "/traces/endpoint"},
		{"an unknown alert", "--set=rules.disabled={AcceleratorFaild}", "rules.disabled: no alert is named AcceleratorFaild; accepted are Accel"},
		{"an unknown rule file", "--set=rules.files.host=true", "rules.files.host: no rule file has this name; accepted are devices, "},
		{"a label of the rules", "--set=rules.labels.severity=x", "rules.labels.severity: the rules use this label; refused are alertmanager, alertname, "},
		{"a label that Prometheus refuses", "--set=rules.labels.__name__=x", "/rules/labels"},
		{"a rule without expression", "--set=rules.extra[0].name=a,rules.extra[0].rules[0].alert=A", "/rules/extra/0/rules/0"},
		{"a digest that is none", "--set=image.digest=sha256:abc", "/image/digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := render("", c.flag)
			if err == nil {
				t.Fatalf("it became\n%s", out)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q is not in %v", c.want, err)
			}
		})
	}
}

// TestNoOperator: a cluster that does not know a kind is named as the cause,
// and a chart can be rendered without a cluster.
func TestNoOperator(t *testing.T) {
	for flag, want := range map[string]string{
		"--set=monitor.kind=PodMonitor":     "monitor.kind: the cluster has no PodMonitor",
		"--set=monitor.kind=ServiceMonitor": "monitor.kind: the cluster has no ServiceMonitor",
		"--set=prometheusRule.enabled=true": "prometheusRule.enabled: the cluster has no PrometheusRule",
	} {
		if _, err := helm("template", "x", chart, pushed, flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
		if _, err := helm("template", "x", chart, pushed, flag, "--set=crdCheck=false"); err != nil {
			t.Error(err)
		}
	}
}

// TestNotes: the notes after an installation list disabled features and what the
// namespace must permit.
func TestNotes(t *testing.T) {
	for flags, want := range map[string]string{
		"":                           "pod-security.kubernetes.io/enforce=privileged",
		"podResources.enabled=false": "Devices are not mapped to pods",
		"kernelLog.mode=device":      "The container is privileged: kernelLog.mode=device",
		"kernelLog.mode=none":        "The kernel log is not read: kernelLog.mode is none.",
		"pcie.enabled=true":          "The kernel log is not read: kernelLog.mode is auto, and the container is not privileged for another reason",
		"processes.enabled=true":     "For its name enable podMetadata.kubelet, podMetadata.enabled or processes.podLogs",
		remediatorOn:                 "http://x-accel-exporter-remediator.n:19401/webhook",
	} {
		if got := notes(t, flags); !strings.Contains(got, want) {
			t.Errorf("%q: %q is not in\n%s", flags, want, got)
		}
	}
}

// notes are what helm prints after an installation with values.
func notes(t *testing.T, values string) string {
	t.Helper()
	out, err := helm("install", "x", chart, pushed, "--dry-run=client", "--namespace=n", "--set="+values)
	if err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(string(out), "NOTES:")
	return notes
}
