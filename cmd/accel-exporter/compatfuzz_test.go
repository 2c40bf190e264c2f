package main

import (
	"slices"
	"strings"
	"testing"
)

// FuzzFromDCGMExporter checks that a translated command line has no flags of
// dcgm-exporter, and that translating it again does not change it.
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
				t.Errorf("%q has the dcgm-exporter flag %q", got, a)
			}
		}
		for _, i := range ignored {
			if !strings.Contains(i, ": ") {
				t.Errorf("%q has no reason", i)
			}
		}
		again, _, err := fromDCGMExporter(got, func(string) (string, bool) { return "", false }, func(string) bool { return false })
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("%q is translated again to %q, %v", got, again, err)
		}
	})
}
