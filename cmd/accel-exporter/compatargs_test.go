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

// TestArgumentsOfDCGMExporter checks how flags and variables are read and which one
// overrides another. The table of docs/migrating-from-dcgm-exporter.md has the
// translation of each.
func TestArgumentsOfDCGMExporter(t *testing.T) {
	for _, c := range []struct {
		args, env []string
		want      []string // without on
		options   foreignOptions
		exists    func(path string) bool
	}{
		{args: []string{"-f", "/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"--collectors=/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"-collectors", "/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"-f", shipped[0]}},
		{args: []string{"-f", shipped[0]}, want: []string{"--dcgm.fields=" + shipped[0]}, exists: anyFile}, // mounted there
		{env: []string{"DCGM_EXPORTER_COLLECTORS=/x.csv"}, want: []string{"--dcgm.fields=/x.csv"}},
		{args: []string{"-f", "/y.csv"}, env: []string{"DCGM_EXPORTER_COLLECTORS=/x.csv"}, want: []string{"--dcgm.fields=/y.csv"}},
		{args: []string{"--dcgm.fields", "/z.csv", "-f", "/y.csv"}, want: []string{"--dcgm.fields", "/z.csv"}},
		{args: []string{"-c", "5000", "-c=1000"}, want: []string{"--collect.interval=1000ms"}},
		{args: []string{"-k"}},
		{args: []string{"--kubernetes=false"}, options: foreignOptions{noPods: true}},
		{args: []string{"-k"}, env: []string{"DCGM_EXPORTER_KUBERNETES=0"}},
		{args: []string{"--kubernetes-enable-pod-labels"}, want: allLabels, options: foreignOptions{podLabels: []string{".*"}}},
		{
			args: []string{"--kubernetes-enable-pod-labels", "--kubernetes-pod-label-allowlist-regex", "^app$,team"},
			want: allLabels, options: foreignOptions{podLabels: []string{"^app$", "team"}},
		},
		{env: []string{"DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX=^app$"}},
		{env: []string{"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID=true"}, want: []string{"--kubernetes.pods"}, options: foreignOptions{podUID: true}},
		{args: []string{"-d", "f", "-s", "f", "-p", "f"}},
		{args: []string{"-n=false"}},
		{args: []string{"--rbmn", "-o", "-n"}, want: []string{"--compat.hostname-label=none"}, options: foreignOptions{oldNames: true, dashes: true}},
		{env: []string{"DCGM_HPC_JOB_MAPPING_DIR=/j"}, options: foreignOptions{jobs: "/j"}},
		{args: []string{"--config.file", "/own.yml", "--log.level=warn", "--debug"}, want: []string{"--config.file", "/own.yml", "--log.level=warn"}},
		{args: []string{"--enable-pprof"}, options: foreignOptions{ignored: []string{"--enable-pprof: profiles are not served"}}},
	} {
		if c.exists == nil {
			c.exists = noFile
		}
		got, options, err := fromDCGMExporter(append([]string{on}, c.args...), foreignFlags, environment(c.env...), c.exists)
		if err != nil {
			t.Errorf("%q %q: %v", c.args, c.env, err)
			continue
		}
		if d := cmp.Diff(append([]string{on}, c.want...), got); d != "" {
			t.Errorf("%q %q (-want +got):\n%s", c.args, c.env, d)
		}
		if d := cmp.Diff(c.options, options, cmp.AllowUnexported(options)); d != "" {
			t.Errorf("%q %q (-want +got):\n%s", c.args, c.env, d)
		}
	}
}

// TestInvalidArguments checks that all invalid arguments are reported at once.
func TestInvalidArguments(t *testing.T) {
	_, _, err := fromDCGMExporter([]string{on, "-c", "0.5", "--kubernetes=maybe", "--log-format=xml", "-f"}, foreignFlags,
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
		got, options, err := fromDCGMExporter(args, foreignFlags, env, anyFile)
		if err != nil || options.ignored != nil || !slices.Equal(got, args) {
			t.Errorf("%q became %q, %v, %v", args, got, options, err)
		}
	}
}
