package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const on = "--" + compatFlag

// environment returns a lookup function for a list of NAME=VALUE.
func environment(list ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range list {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func noFile(string) bool  { return false }
func anyFile(string) bool { return true }

// TestArgumentsOfDCGMExporter checks the translation of each flag and variable,
// and the reason that is reported for one without effect.
func TestArgumentsOfDCGMExporter(t *testing.T) {
	for _, c := range []struct {
		args, env []string
		want      []string // without on
		ignored   []string // prefixes
		exists    func(path string) bool
	}{
		{args: []string{"-f", "/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"--collectors=/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"-collectors", "/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"-f", shipped[0]}},
		{args: []string{"-f", shipped[0]}, want: []string{"--dcgm.fields=" + shipped[0]}, exists: anyFile}, // mounted there
		{env: []string{"DCGM_EXPORTER_COLLECTORS=/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"-f", "/y.csv"}, env: []string{"DCGM_EXPORTER_COLLECTORS=/x.csv"}, want: []string{"--dcgm.fields=/y.csv"}},
		{args: []string{"--dcgm.fields=/z.csv", "-f", "/y.csv"}, want: []string{"--dcgm.fields=/z.csv"}},
		{args: []string{"--dcgm.fields", "/z.csv", "-f", "/y.csv"}, want: []string{"--dcgm.fields", "/z.csv"}},
		{args: []string{"-a", ":9400"}, want: []string{"--web.listen-address=:9400"}},
		{env: []string{"DCGM_EXPORTER_LISTEN=[::]:9400"}, want: []string{"--web.listen-address=[::]:9400"}},
		{args: []string{"-c", "5000", "-c=1000"}, want: []string{"--collect.interval=1000ms"}},
		{env: []string{"DCGM_EXPORTER_INTERVAL=15000"}, want: []string{"--collect.interval=15000ms"}},
		{args: []string{"-k"}},
		{args: []string{"--kubernetes=false"}, want: []string{"--no-compat.pods"}},
		{env: []string{"DCGM_EXPORTER_KUBERNETES=0"}, want: []string{"--no-compat.pods"}},
		{args: []string{"--compat.pods"}, env: []string{"DCGM_EXPORTER_KUBERNETES=false"}, want: []string{"--compat.pods"}},
		{args: []string{"--kubernetes-enable-pod-labels"}, want: append(slices.Clone(allLabels), "--compat.pod-label=.*")},
		{
			args: []string{"--kubernetes-enable-pod-labels", "--kubernetes-pod-label-allowlist-regex", "^app$,team"},
			want: append(slices.Clone(allLabels), "--compat.pod-label=^app$", "--compat.pod-label=team"),
		},
		{env: []string{"DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX=^app$"}},
		{env: []string{"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID=true"}, want: []string{"--kubernetes.pods", "--compat.pod-uid"}},
		{args: []string{"--kubernetes-gpu-id-type=device-name"}, ignored: []string{"--kubernetes-gpu-id-type: not needed"}},
		{env: []string{"KUBERNETES_VIRTUAL_GPUS=true"}, ignored: []string{"KUBERNETES_VIRTUAL_GPUS: not needed"}},
		{env: []string{"KUBERNETES_ENABLE_DRA=true"}, want: []string{"--kubernetes.pods", "--kubernetes.resource-slices"}},
		{env: []string{"NVIDIA_RESOURCE_NAMES=nvidia.com/a100"}, ignored: []string{"NVIDIA_RESOURCE_NAMES: not needed"}},
		{env: []string{"DCGM_POD_RESOURCES_KUBELET_SOCKET=/x.sock"}, want: []string{"--podresources.socket=/x.sock"}},
		{args: []string{"-o"}, want: []string{"--compat.old-label-names"}},
		{args: []string{"-m", "ns:name"}, ignored: []string{"-m: ConfigMaps are not read; mount it"}},
		{env: []string{"DCGM_EXPORTER_CONFIGMAP_DATA=none"}},
		{args: []string{"-r", "localhost:5555"}, want: []string{"--dcgm.address=localhost:5555"}},
		{env: []string{"DCGM_REMOTE_HOSTENGINE_INFO=host:1"}, want: []string{"--dcgm.address=host:1"}},
		{args: []string{"-d", "f", "-s", "f", "-p", "f"}},
		{args: []string{"-d", "g:0", "-s", "s:1", "-p", "c"}, ignored: []string{"-d: every device", "-s: every device", "-p: every device"}},
		{args: []string{"-n"}, want: []string{"--compat.hostname-label=none"}},
		{args: []string{"-n=false"}},
		{args: []string{"--rbmn"}, want: []string{"--compat.model-dashes"}},
		{args: []string{"--fake-gpus"}, ignored: []string{"--fake-gpus: fake GPUs"}},
		{args: []string{"--web-config-file=/w.yml"}, want: []string{"--web.config.file=/w.yml"}},
		{args: []string{"--web-systemd-socket"}, want: []string{"--web.systemd-socket"}},
		{args: []string{"-x", "1", "--clock-events-count-window-size=2"}, ignored: []string{"-x: its count", "--clock-events-count-window-size: its count"}},
		{args: []string{"--enable-dcgm-log", "--dcgm-log-level", "DEBUG"}, ignored: []string{"--enable-dcgm-log: ", "--dcgm-log-level: "}},
		{env: []string{"DCGM_EXPORTER_DCGM_LOG_LEVEL=NONE"}},
		{args: []string{"--debug", "--log-format=json"}, want: []string{"--log.level=debug", "--log.format=json"}},
		{args: []string{"--log-format", "text"}},
		{args: []string{"--hpc-job-mapping-dir", "/j"}, want: []string{"--compat.hpc-jobs=/j"}},
		{env: []string{"DCGM_HPC_JOB_MAPPING_DIR=/j"}, want: []string{"--compat.hpc-jobs=/j"}},
		{
			args:    []string{"--dump-enabled", "--dump-directory=/d", "--dump-retention", "1", "--dump-compression"},
			ignored: []string{"--dump-enabled: ", "--dump-directory: ", "--dump-retention: ", "--dump-compression: "},
		},
		{env: []string{"DISABLE_STARTUP_VALIDATE=true"}, ignored: []string{"DISABLE_STARTUP_VALIDATE: not needed"}},
		{args: []string{"--enable-gpu-bind-unbind-watch", "--gpu-bind-unbind-poll-interval=1s"}, ignored: []string{"--enable-gpu-bind", "--gpu-bind"}},
		{args: []string{"--enable-pprof"}, ignored: []string{"--enable-pprof: "}},
		{args: []string{"--config-file=/c"}, ignored: []string{"--config-file: its form"}},
		{args: []string{"--web-read-timeout=1s", "--web-write-timeout", "1s"}, ignored: []string{"--web-read", "--web-write"}},
		{args: []string{"--max-concurrent-scrapes=4"}, want: []string{"--web.max-requests=4"}},
		{args: []string{"--enable-exporter-metrics"}, ignored: []string{"--enable-exporter-metrics: not needed"}},
		{args: []string{"--watch-max-keep-age=1", "--watch-max-keep-samples=1"}, ignored: []string{"--watch-max-keep-age: ", "--watch-max-keep-samples: "}},
		{args: []string{"--container-labels", "--container-runtime-socket=/x"}, ignored: []string{"--container-labels: ", "--container-runtime-socket: "}},
		{args: []string{"--config.file", "/own.yml", "--log.level=warn", "--debug"}, want: []string{"--config.file", "/own.yml", "--log.level=warn"}},
	} {
		if c.exists == nil {
			c.exists = noFile
		}
		got, ignored, err := fromDCGMExporter(append([]string{on}, c.args...), environment(c.env...), c.exists)
		if err != nil {
			t.Errorf("%q %q: %v", c.args, c.env, err)
			continue
		}
		if d := cmp.Diff(append([]string{on}, c.want...), got); d != "" {
			t.Errorf("%q %q (-want +got):\n%s", c.args, c.env, d)
		}
		if len(ignored) != len(c.ignored) {
			t.Errorf("%q %q: ignored %q", c.args, c.env, ignored)
			continue
		}
		for i := range ignored {
			if !strings.HasPrefix(ignored[i], c.ignored[i]) || strings.HasSuffix(ignored[i], ": ") {
				t.Errorf("%q %q: ignored %q", c.args, c.env, ignored)
			}
		}
	}
}

// TestInvalidArguments checks that all invalid arguments are reported at once.
func TestInvalidArguments(t *testing.T) {
	_, _, err := fromDCGMExporter([]string{on, "-c", "0.5", "--kubernetes=maybe", "--log-format=xml", "-f"},
		environment("DCGM_EXPORTER_DEBUG=2", "DCGM_EXPORTER_INTERVAL="), noFile)
	want := `-c is "0.5"; milliseconds from 100 to 600000 are accepted
--kubernetes is "maybe"; true or false is accepted
--log-format is "xml"; text or json is accepted
-f has no value
DCGM_EXPORTER_DEBUG is "2"; true or false is accepted`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestArgumentsWithoutCompat checks that nothing is translated without the flag.
func TestArgumentsWithoutCompat(t *testing.T) {
	env := environment("DCGM_EXPORTER_LISTEN=:9400", "DCGM_EXPORTER_DEBUG=nonsense")
	for _, args := range [][]string{
		nil, {"-f", "x"}, {"--web.listen-address=:1", "-k"}, {"--no-" + compatFlag, "-k"}, {on, "--no-" + compatFlag, "-k"}, {on + "=false"}, {"--", on, "-k"},
	} {
		got, ignored, err := fromDCGMExporter(args, env, anyFile)
		if err != nil || ignored != nil || !slices.Equal(got, args) {
			t.Errorf("%q became %q, %q, %v", args, got, ignored, err)
		}
	}
}

// FuzzFromDCGMExporter checks that a translated command line has the flags of this
// exporter first and in their order, and no flags of dcgm-exporter, and that translating
// it again does not change it.
func FuzzFromDCGMExporter(f *testing.F) {
	f.Add("-f\n/etc/dcgm-exporter/default-counters.csv\n-c\n5000\n-k=false", "none")
	f.Add("--hpc-job-mapping-dir=/run/jobs\n--debug\n-rbmn\n--log-format=json", "true")
	f.Add("--config.file\n/x\n-f=\n--\n=\n---f\n-\n\n--log-format\njson\n-r=:2\n-x\n1\n--log.level=warn\n--=x\nx", "")
	f.Add("--config.file\n/x\n-f=\n-k\n--log.level=warn", "")
	f.Fuzz(func(t *testing.T, line, variable string) {
		args := append([]string{on}, strings.Split(line, "\n")...)
		lookup := func(string) (string, bool) { return variable, variable != "" }
		got, ignored, err := fromDCGMExporter(args, lookup, noFile)
		if err != nil || !wantsCompat(got) {
			return
		}
		var own []string
		for i := 0; i < len(args); i++ {
			name, _, assigned := strings.Cut(args[i], "=")
			switch f := foreign(name); {
			case f == nil:
				own = append(own, args[i])
			case !f.boolean && !assigned:
				i++ // its value
			}
		}
		if len(got) < len(own) || !slices.Equal(got[:len(own)], own) {
			t.Errorf("%q became %q, want %q and more", args, got, own)
		}
		for i, a := range got {
			if name, _, _ := strings.Cut(a, "="); foreign(name) != nil || i >= len(own) && !strings.HasPrefix(a, "--") {
				t.Errorf("%q became %q, with %q", args, got, a)
			}
		}
		for _, i := range ignored {
			if !strings.Contains(i, ": ") {
				t.Errorf("%q has no reason", i)
			}
		}
		again, _, err := fromDCGMExporter(got, environment(), noFile)
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("%q is translated again to %q, %v", got, again, err)
		}
	})
}
