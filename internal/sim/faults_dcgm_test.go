package sim

import (
	"strings"
	"testing"
)

// A fault of DCGM becomes a line of the state, for the library to read.
func TestDCGMFaults(t *testing.T) {
	for _, tc := range []struct{ scenario, fault, key, want string }{
		{"h100-8", "dcgm-hang", "fault.1", "kind=hang call=dcgm* delay=0"},
		{"h100-8", "dcgm-slow 2 --delay=1s --call=dcgmHealthCheck", "fault.1", "kind=slow call=dcgmHealthCheck delay=1000000000 gpu=2"},
		{"h100-8", "dcgm-crash --how=dereference", "fault.1", "kind=crash call=dcgm* delay=0 code=1"},
		{"h100-8", "dcgm-error dcgmProf* in-use", "fault.1", "kind=error call=dcgmProf* delay=0 code=-34"},
		{"h100-8", "dcgm-error dcgmInit -7", "fault.1", "kind=error call=dcgmInit delay=0 code=-7"},
		{"h100-8", "dcgm-engine down", "dcgm.engine", "down"},
		{"h100-8", "dcgm-engine disconnect", "dcgm.generation", "1"},
		{"h100-8", "dcgm-field 150 status:DCGM_ST_GPU_IS_LOST 3", "dcgm.value.1", "field=150 value=status:-18 gpu=3"},
		{"h100-8", "dcgm-field 203 808334905 all", "dcgm.value.1", "field=203 value=808334905"},
		{"h100-8", "dcgm-profiling in-use", "dcgm.profiling", "in-use"},
		{"h100-8", "dcgm-limit field-groups 3", "dcgm.limit.field_groups", "3"},
		{"h100-8", "dcgm-version-mismatch", "dcgm.version", "mismatch"},
		{"hgx-nvswitch", "dcgm-part switch:1 temperature 99", "switch.1.858", "@0 sine:48:3:60 @100.000 99"},
		{"hgx-nvswitch", "dcgm-part switch:3 link.crc_errors 5 --link=63", "switch.3.787.63", "@0 error:3 @100.000 5"},
		{"grace", "dcgm-part cpu:0 power_watts 240", "cpu.0.1130", "@0 noise:120:20:2 @100.000 240"},
	} {
		s := stopped(t, tc.scenario)
		if err := s.Inject(strings.Fields(tc.fault)); err != nil {
			t.Errorf("%s: %v", tc.fault, err)
		} else if got := s.Get(tc.key); got != tc.want {
			t.Errorf("%s: %s is %q, want %q", tc.fault, tc.key, got, tc.want)
		}
		if err := s.Clear("all"); err != nil {
			t.Error(err)
		}
		for _, key := range append(s.keys("dcgm."), s.keys("fault.")...) {
			if key != "dcgm.generation" && key != "dcgm.value_seq" {
				t.Errorf("%s: %s is left after clear", tc.fault, key)
			}
		}
	}
}

func TestDCGMFaultsRefused(t *testing.T) {
	for fault, want := range map[string]string{
		"dcgm-hang --call=nvmlInit":                  `want the name of a function of libdcgm, found "nvmlInit"`,
		"dcgm-error dcgmInit 7":                      "want -1 to -99 or one of BADPARAM, ",
		"dcgm-engine gone":                           "state: want one of up, down, restart, disconnect",
		"dcgm-field temperature 95 0":                `want the number of a field of DCGM, 1 to 2047, found "temperature"`,
		"dcgm-field 150 status:NOPE 0":               `unknown return code "NOPE"`,
		"dcgm-field 150 95 9":                        `no device "9"`,
		"dcgm-profiling busy":                        "want one of free, paused, in-use",
		"dcgm-limit groups 65":                       "count: want 0 to 64, found 65",
		"dcgm-limit watches 3":                       "what: want one of groups, field-groups",
		"dcgm-part switch:9 temperature 1":           `want switch:N or cpu:N that the scenario has, found "switch:9"`,
		"dcgm-part switch:0 speed 1":                 `unknown key "speed" of a switch; want one of fatal_error, link.crc_errors, `,
		"dcgm-part switch:0 temperature hot":         "value: ",
		"dcgm-part switch:0 link.status 0 --link=64": `link: switch:0 has 64, found "64"`,
	} {
		s := stopped(t, "hgx-nvswitch")
		if err := s.Inject(strings.Fields(fault)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fault, err, want)
		}
	}
}

// Clearing one GPU clears its fields and not those of the others.
func TestDCGMFieldsOfOneGPUCleared(t *testing.T) {
	s := stopped(t, "h100-8")
	for _, fault := range []string{"dcgm-field 150 blank 0", "dcgm-field 150 blank 1", "dcgm-field 150 blank all"} {
		if err := s.Inject(strings.Fields(fault)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Clear("0"); err != nil {
		t.Fatal(err)
	}
	if got := s.keys("dcgm.value."); len(got) != 2 || s.Has("dcgm.value.1") {
		t.Errorf("left: %v", got)
	}
}

func TestPartsStrictness(t *testing.T) {
	for text, want := range map[string]string{
		"description: a\nswitches: [{links: 300}]":                      "x.yaml:2: switches[0].links: want a whole number from 1 to 256, found \"300\"",
		"description: a\nswitches: [{values: {speed: 1}}]":              "x.yaml:2: switches[0].values.speed: unknown key \"speed\" of a switch; want one of ",
		"description: a\ncpus: [{cores: 72, values: {power_watts: x}}]": "x.yaml:2: cpus[0].values.power_watts: unknown value \"x\"",
		"description: a\ncpus: [{links: 2}]":                            "x.yaml:2: cpus[0].links: unknown key; want one of cores, count, values",
	} {
		if _, err := ParseScenario("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// stopped is the state of a scenario with the clock stopped at 100 s.
func stopped(t *testing.T, scenario string) *State {
	t.Helper()
	sc, err := LoadScenario(fixtures, scenario)
	if err != nil {
		t.Fatal(err)
	}
	at := 100.0
	s, err := sc.Compile(fixtures, Options{Frozen: &at})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
