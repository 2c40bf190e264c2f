package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

func TestGuardNegative(t *testing.T) {
	for _, tc := range [][2]string{
		{"inject set temperature -1 0", "inject set temperature -- -1 0"},
		{"inject set temperature -- -1 0", "inject set temperature -- -1 0"},
		{"inject xid 79 0 --gi=2", "inject xid 79 0 --gi=2"},
		{"run -- prog -1", "run -- prog -1"},
	} {
		if got := guardNegative(strings.Fields(tc[0])); !slices.Equal(got, strings.Fields(tc[1])) {
			t.Errorf("%s became %v", tc[0], got)
		}
	}
}

// Every fault is a command; a scenario can be set up, edited and cleared.
func TestCommands(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	do := func(words string) error {
		return run(append([]string{"--state=" + state, "--fixtures=../../fixtures"}, strings.Fields(words)...))
	}
	if err := do("inject lost 0"); err == nil || !strings.Contains(err.Error(), "accel-sim run") {
		t.Errorf("without a simulation: %v", err)
	}
	for _, words := range []string{
		"scenarios", "compile --scenario=h100-8 --frozen=5", "inject xid 94 4/1 --count=3", "inject set temperature -1 0",
		"inject mig 4 7g.80gb", "inject hang all --for=10ms --call=nvmlDeviceGetName", "inject ecc uncorrected 2 --location=sram", "clear 0",
	} {
		if err := do(words); err != nil {
			t.Fatalf("%s: %v", words, err)
		}
	}
	s, err := sim.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Get("gpu.0.temperature.gpu"); got != "@0 model @5.000 -1 @5.000 model" {
		t.Errorf("the temperature is %q", got)
	}
	if s.Get("seq") != "5" {
		t.Errorf("%s events, want three Xids, one of MIG and one of ECC", s.Get("seq"))
	}
}
