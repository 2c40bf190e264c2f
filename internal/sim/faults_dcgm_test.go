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
		{"hgx-nvswitch", "dcgm-part switch:1 temperature 99", "switch.1.858", "@0 sine:48:3:60 @10.000 99"},
		{"hgx-nvswitch", "dcgm-part switch:3 link.crc_errors 5 --link=63", "switch.3.787.63", "@0 error:3 @10.000 5"},
		{"grace", "dcgm-part cpu:0 power_watts 240", "cpu.0.1130", "@0 noise:120:20:2 @10.000 240"},
	} {
		s := compiled(t, tc.scenario)
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

// Clearing one GPU clears its fields and not those of the others.
func TestDCGMFieldsOfOneGPUCleared(t *testing.T) {
	s := compiled(t, "h100-8")
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
