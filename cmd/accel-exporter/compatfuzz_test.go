package main

import (
	"slices"
	"strings"
	"testing"
)

// FuzzFromDCGMExporter: whatever command line and environment dcgm-exporter
// had, the translation has none of its flags left, and is its own translation.
func FuzzFromDCGMExporter(f *testing.F) {
	f.Add("-f\n/etc/dcgm-exporter/default-counters.csv\n-c\n5000\n-k=false", "none")
	f.Add("--hpc-job-mapping-dir=/run/jobs\n--debug\n-rbmn\n--log-format=json", "true")
	f.Fuzz(func(t *testing.T, line, variable string) {
		args := append([]string{"--" + compatFlag}, strings.Split(line, "\n")...)
		lookup := func(string) (string, bool) { return variable, variable != "" }
		got, ignored, err := fromDCGMExporter(args, lookup, func(string) bool { return false })
		if err != nil || !wantsCompat(got) {
			return
		}
		for _, a := range got {
			if name, _, _ := strings.Cut(a, "="); foreign(name) != nil {
				t.Errorf("%q of %q is dcgm-exporter's", a, got)
			}
		}
		for _, i := range ignored {
			if !strings.Contains(i, ": ") {
				t.Errorf("%q is without a reason", i)
			}
		}
		again, _, err := fromDCGMExporter(got, func(string) (string, bool) { return "", false }, func(string) bool { return false })
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("%q is translated to %q, %v", got, again, err)
		}
	})
}
