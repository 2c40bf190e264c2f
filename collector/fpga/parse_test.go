package fpga

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// TestErrorNames: a bit is named where its meaning is known.
func TestErrorNames(t *testing.T) {
	for _, c := range []struct {
		unit          string
		revision, bit int
		want          string
	}{
		{"pcie0", 0, 7, "completion_timeout"},
		{"pcie0", unknownRevision, 7, "completion_timeout"},
		{"pcie0", unknownRevision, 12, "receive_fifo_overflow"}, // of revision 1 alone
		{"nonfatal", unknownRevision, 9, "temperature_ap6"},     // of revision 0 alone
		{"nonfatal", 1, 9, "bit_9"},
		{"fme", unknownRevision, 0, "bit_0"}, // they disagree
		{"fme", 0, 0, "fabric"},
		{"fme", 1, 0, "pr_fifo_parity"},
		{"port", 2, 0, "bit_0"}, // a revision that is not in the table
		{"port", unknownRevision, 60, "tx1_byte_fields_outside_byte_mode"},
		{"port", unknownRevision, 63, "bit_63"},
		{"fatal", unknownRevision, 11, "injected_catastrophic"},
	} {
		if got := dflErrorName(c.unit, c.revision, c.bit); got != c.want {
			t.Errorf("%s revision %d bit %d: %s, want %s", c.unit, c.revision, c.bit, got, c.want)
		}
	}
	seen := map[string]bool{}
	for b, name := range dflErrorNames {
		key := b.unit + string(rune('0'+b.revision)) + name
		if seen[key] {
			t.Errorf("%s: two bits of revision %d are called %s", b.unit, b.revision, name)
		}
		seen[key] = true
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || strings.HasPrefix(name, "bit_") {
			t.Errorf("%s bit %d: %q", b.unit, b.bit, name)
		}
	}
	if n := len(dflErrorNames); n != 134 {
		t.Errorf("%d names", n)
	}
}

// FuzzTexts: a driver's text is parsed correctly or rejected, and a label made
// of it is fit.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"0x0", "ffffffffffffffff", "-0x1", "44522", "0000:1b:00.0", "temp12_input", "a\x00b", "FPGA Core Voltage\n", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := hexadecimal(s); ok && strings.ContainsAny(s, "-+_ ") {
			t.Errorf("%q is %d", s, v)
		}
		for _, text := range []string{tidy(s), deviceTreeText([]byte(s))} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x00\x7f") || len(text) > 500 {
				t.Errorf("%q became %q", s, text)
			}
		}
		if text := tidy(s); tidy(text) != text {
			t.Errorf("%q is not tidy", text)
		}
		if sysfs.PCIAddress(s) && (len(s) < 12 || sysfs.PCISlot(s) != s[:len(s)-2]) {
			t.Errorf("%q: slot %q", s, sysfs.PCISlot(s))
		}
		if natural(s, s) != 0 || natural(s, s+"x") > 0 {
			t.Errorf("%q is not in order", s)
		}
		if c := channelOf(channels, s); c != nil && !strings.HasPrefix(s, c.kind) {
			t.Errorf("%q measures %s", s, c.kind)
		}
	})
}
