package deploy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// program is the exporter that ACCEL_EXPORTER names, or one beside it.
func program(t *testing.T, name string) string {
	t.Helper()
	exporter := os.Getenv("ACCEL_EXPORTER")
	if exporter == "" {
		t.Fatal("ACCEL_EXPORTER does not name the exporter; make test-deploy builds it")
	}
	return filepath.Join(filepath.Dir(exporter), name)
}

// exporter runs the exporter.
func exporter(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "accel-exporter"), args...)
	cmd.Env = append(os.Environ(), "NODE_NAME=node1", "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443")
	return cmd.CombinedOutput()
}

var flagName = regexp.MustCompile(`--(?:\[no-\])?([a-z0-9.-]+)`)

// TestFlags: each argument of every manifest is a flag of its program.
func TestFlags(t *testing.T) {
	ofExporter, ofRemediator := flagsOf(t, "accel-exporter"), flagsOf(t, "accel-remediator")
	check := func(manifest string, known map[string]bool, spec *corev1.PodSpec) {
		for _, arg := range spec.Containers[0].Args {
			flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if !known[flag] {
				t.Errorf("%s: %s has no --%s", manifest, spec.Containers[0].Name, flag)
			}
		}
	}
	for _, name := range cases(t) {
		check("chart "+name, ofExporter, podSpec(t, objects(t, name)))
	}
	for _, dir := range glob(t, "deploy/kustomize/overlays/*") {
		check(dir, ofExporter, podSpec(t, build(t, dir)))
	}
	for _, name := range remediatorCases(t) {
		check("chart "+name, ofRemediator, remediatorSpec(t, objects(t, name)))
	}
}

// flagsOf are the flags that a program's help names.
func flagsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	help := command(t, program(t, name), "--help-long")
	known := map[string]bool{}
	for _, m := range flagName.FindAllStringSubmatch(help, -1) {
		known[m[1]] = true
		if strings.HasPrefix(m[0], "--[no-]") {
			known["no-"+m[1]] = true
		}
	}
	return known
}

// TestConfigCheck: the exporter takes the arguments and the files of each case
// as they come into its container.
func TestConfigCheck(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			if out, err := exporter(t, append(container(t, objects(t, name)), "--config.check")...); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestConfigCheckRefuses: a mistake in a value that is a file of the exporter
// is found by it.
func TestConfigCheckRefuses(t *testing.T) {
	if _, err := render("", "--set=config.collect.intervall=1s"); err == nil || !strings.Contains(err.Error(), "intervall") {
		t.Errorf("the schema of the values does not refuse an unknown key of the configuration: %v", err)
	}
	all := objects(t, "", "--set=config.collect.interval=1ms") // no schema has a range of durations
	output, err := exporter(t, append(container(t, all), "--config.check")...)
	if err == nil || !bytes.Contains(output, []byte("from 100ms to 10m")) {
		t.Errorf("%v: %s", err, output)
	}
}

// container lays out what the exporter's container has, and returns its
// arguments, with a file to check among them.
func container(t *testing.T, all []object) []string {
	t.Helper()
	args := layOut(t, podSpec(t, all), all)
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--config.file=") }) {
		empty := filepath.Join(t.TempDir(), "empty.yml")
		write(t, empty, nil)
		args = append(args, "--config.file="+empty)
	}
	return args
}

// layOut puts the volumes of the container into a folder, and returns its
// arguments with that folder before each of their paths.
func layOut(t *testing.T, spec *corev1.PodSpec, all []object) []string {
	t.Helper()
	dir := t.TempDir()
	var places []string
	for _, m := range spec.Containers[0].VolumeMounts {
		places = append(places, m.MountPath, dir+m.MountPath)
	}
	inside := strings.NewReplacer(places...)
	for _, m := range spec.Containers[0].VolumeMounts {
		for _, v := range spec.Volumes {
			if v.Name == m.Name {
				fill(t, dir+m.MountPath, inside, &v, all)
			}
		}
	}
	var args []string
	for _, a := range spec.Containers[0].Args {
		args = append(args, inside.Replace(a))
	}
	return args
}

// secrets are what the chart expects of Secrets that are not its own.
var secrets = map[string]map[string]string{
	"alertmanager-login": {"password": "secret\n"},
	"accel-exporter-web": {"web.yml": "basic_auth_users: {}\n"},
	"alertmanager-client": {
		"http.yml":     "basic_auth: {username: remediator, password_file: password}\n",
		"exporter.yml": "basic_auth: {username: remediator, password_file: password}\n",
		"password":     "secret\n",
	},
	"otlp-login":           {"headers.yml": "api-key: secret\n"},
	"otlp-ca":              {"ca.crt": authority},
	"evidence":             {"headers.yml": "Authorization: secret\n"},
	"accel-remediator-web": {"web.yml": "basic_auth_users: {}\n"},
}

func fill(t *testing.T, dir string, inside *strings.Replacer, v *corev1.Volume, all []object) {
	t.Helper()
	files := map[string]string{}
	switch {
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			for _, item := range s.Secret.Items {
				files[item.Path] = secrets[s.Secret.Name][item.Key]
			}
		}
	case v.ConfigMap != nil:
		for _, o := range all {
			if o.id() == "ConfigMap/"+v.ConfigMap.Name {
				for name, text := range o.sub("data") {
					files[name] = inside.Replace(text.(string))
				}
			}
		}
	case v.Secret != nil:
		files = secrets[v.Secret.SecretName]
	}
	if (v.ConfigMap != nil || v.Secret != nil || v.Projected != nil) && len(files) == 0 {
		t.Fatalf("nothing is in the volume %s", v.Name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // also of the node's folders
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), []byte(text))
	}
}
