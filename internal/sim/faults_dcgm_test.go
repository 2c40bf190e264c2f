package sim

import (
	"strings"
	"testing"
)

// A fault of DCGM becomes a line of the state, for the library to read. Clearing
// one GPU clears its fields and not the fields of other GPUs; clearing all, every
// line.
func TestDCGMFaults(t *testing.T) {
	s := compiled(t, "hgx-nvswitch")
	for _, tc := range []struct{ fault, key, want string }{
		{"dcgm-hang", "fault.1", "kind=hang call=dcgm* delay=0"},
		{"dcgm-crash", "fault.2", "kind=crash call=dcgm* delay=0"},
		{"dcgm-error dcgmProf* in-use 1", "fault.3", "kind=error call=dcgmProf* delay=0 code=-34 gpu=1 mig=-1"},
		{"dcgm-engine disconnect", "dcgm.generation", "1"},
		{"dcgm-field 150 status:DCGM_ST_GPU_IS_LOST 1", "dcgm.value.1", "field=150 value=status:-18 gpu=1"},
		{"dcgm-field 150 blank all", "dcgm.value.2", "field=150 value=blank"},
		{"dcgm-part switch:3 link.crc_errors 5 --link=63", "switch.3.787.63", "@0 error:3 @10.000 5"},
	} {
		if err := s.Inject(strings.Fields(tc.fault)); err != nil {
			t.Errorf("%s: %v", tc.fault, err)
		} else if got := s.Get(tc.key); got != tc.want {
			t.Errorf("%s: %s is %q, want %q", tc.fault, tc.key, got, tc.want)
		}
	}
	if err := s.Clear("1"); err != nil {
		t.Fatal(err)
	}
	if got := s.keys("dcgm.value."); len(got) != 1 {
		t.Errorf("clear 1 leaves %v", got)
	}
	if err := s.Clear("all"); err != nil {
		t.Fatal(err)
	}
	if left := append(s.keys("dcgm.value."), s.keys("fault.")...); len(left) > 0 {
		t.Errorf("clear leaves %v", left)
	}
}
