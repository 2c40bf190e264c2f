package counters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

func TestCountersFile(t *testing.T) {
	text := "\ufeff# of a user\r\n\r\n" +
		"DCGM_FI_DEV_GPU_TEMP ,  gauge, \"Degrees, of the \"\"GPU\"\"\"\r\n" +
		"  # indented\r\n" +
		"dcgm_nvlink_bandwidth_total, counter, Bandwidth\r\n" +
		"DCGM_FI_DRIVER_VERSION,label,\r\n" +
		"DCGM_FI_DEV_MINOR_NUMBER,label,Minor\r\n" +
		"DCGM_EXP_XID_ERRORS_COUNT, counter, Xids\r\n" +
		"DCGM_FI_DEV_ACCOUNTING_DATA, gauge, a structure\r\n" +
		"DCGM_FI_DEV_FB_USED, histogram, no such thing\r\n" +
		"DCGM_FI_DEV_PCIE_REPLAY_COUNTER, gauge, Retries"
	c, err := Unstated.Parse("user.csv", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Rows {
		got = append(got, fmt.Sprintf("%d %s %d %v %s<-%s %q", r.Line, r.Name, r.Field.ID, r.Derived, r.Type, r.Declared, r.Help))
	}
	want := []string{
		`3 DCGM_FI_DEV_GPU_TEMP 150 false gauge<-gauge "Degrees, of the \"GPU\""`,
		`5 dcgm_nvlink_bandwidth_total 449 false gauge<-counter "Bandwidth"`,
		`6 DCGM_FI_DRIVER_VERSION 1 false label<-label ""`,
		`7 DCGM_FI_DEV_MINOR_NUMBER 55 false label<-label "Minor"`,
		`8 DCGM_EXP_XID_ERRORS_COUNT 0 true counter<-counter "Xids"`,
		`11 DCGM_FI_DEV_PCIE_REPLAY_COUNTER 202 false gauge<-gauge "Retries"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	skipped := []Skipped{{9, "DCGM_FI_DEV_ACCOUNTING_DATA", SkipBinary}, {10, "DCGM_FI_DEV_FB_USED", SkipType}}
	if d := cmp.Diff(skipped, c.Skipped); d != "" {
		t.Error(d)
	}
}

// TestUnknownField checks that a row with an unknown field costs only itself, and that
// a name with two meanings needs the release.
func TestUnknownField(t *testing.T) {
	text := "DCGM_FI_DEV_GPU_TMP, gauge, x\nDCGM_FI_DEV_GPU_UTIL_RATIO, gauge, x\n" +
		"DCGM_FI_DEV_OFA_UTIL_RATIO, gauge, of a newer DCGM\nDCGM_FI_DEV_FB_USED_BYTES, gauge, x\n"
	tmp := `f.csv:1:1: field "DCGM_FI_DEV_GPU_TMP" is not in DCGM up to 4.7, perhaps DCGM_FI_DEV_GPU_TEMP` + "\n"
	newer := `f.csv:3:1: field "DCGM_FI_DEV_OFA_UTIL_RATIO" is not in DCGM up to 4.7`
	for release, want := range map[Release]string{
		Unstated:  "DCGM_FI_DEV_FB_USED_BYTES=1627 " + tmp + "f.csv:2:1: DCGM_FI_DEV_GPU_UTIL_RATIO is a percentage up to dcgm-exporter 4.8 and a ratio since 4.9; set --compat.release=4.8 or --compat.release=4.9\n" + newer,
		Release48: "DCGM_FI_DEV_GPU_UTIL_RATIO=203 DCGM_FI_DEV_FB_USED_BYTES=1627 " + tmp + newer,
		Release49: "DCGM_FI_DEV_GPU_UTIL_RATIO=1613 DCGM_FI_DEV_FB_USED_BYTES=1627 " + tmp + newer,
	} {
		c, err := release.Parse("f.csv", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range c.Rows {
			got += fmt.Sprintf("%s=%d ", r.Name, r.Field.ID)
		}
		if got += c.Unread.Error(); got != want {
			t.Errorf("release %q:\n%s\nwant\n%s", release, got, want)
		}
		if n := len(c.Rows) + len(c.Skipped); n != 4 {
			t.Errorf("%d rows", n)
		}
	}
}

// TestBroken compares the errors of broken files with the .err files.
func TestBroken(t *testing.T) { golden.Mistakes(t, Unstated.Parse) }

func TestCountersFileTooLarge(t *testing.T) {
	for name, text := range map[string]string{
		"file": strings.Repeat("#\n", maxSize),
		"same": strings.Repeat("DCGM_FI_DEV_ACCOUNTING_DATA, gauge, x\n", 2000),
	} {
		_, err := Unstated.Parse(name, []byte(text))
		if err == nil || name != "same" && !strings.Contains(err.Error(), "accepted") {
			t.Errorf("%s: %v", name, err)
		}
		if n := strings.Count(fmt.Sprint(err), "\n"); n > maxMistakes {
			t.Errorf("%s: %d lines of mistakes", name, n+1)
		}
	}
}
