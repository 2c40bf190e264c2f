package health_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// TestNVLinkSubCodes: every sub-code of NVLink 5 that the kernel log reports has an
// entry in the catalogue, and the reverse.
func TestNVLinkSubCodes(t *testing.T) {
	c := health.Builtin()
	known := 0
	for _, e := range c.Entries() {
		if e.Sub != "" && e.Sub != "no_sub_code" && e.Event == "" {
			known++
		}
	}
	reported := 0
	for code := uint64(144); code <= 150; code++ {
		for _, s := range kernellog.NVLinkSubs(code) {
			e := xid(code, sub(s))
			entry, _ := c.Lookup(&e)
			switch {
			case entry.Sub != "":
				reported++
			case strings.Contains(s, ":"):
				t.Errorf("Xid %d, %s has no entry", code, s)
			}
		}
	}
	if reported != known {
		t.Errorf("the kernel log reports %d entries, the catalogue has %d", reported, known)
	}
}

// TestNoSubCode: an Xid of NVLink 5 that only the driver has reported is judged as the
// gravest of its sub-codes, and its text explains why.
func TestNoSubCode(t *testing.T) {
	c := health.Builtin()
	for code := uint64(144); code <= 150; code++ {
		e := xid(code, func(e *collector.Event) { e.Source = kernellog.Name })
		gravest, _ := c.Lookup(&e) // without a sub-code that the program knows
		for _, s := range kernellog.NVLinkSubs(code) {
			e.Sub = s
			if entry, _ := c.Lookup(&e); entry.Severity > gravest.Severity {
				gravest = entry
			}
		}
		e = xid(code)
		got, _ := c.Lookup(&e)
		if got.Severity != gravest.Severity || got.Action != gravest.Action || got.Ends != gravest.Ends || got.Rules != gravest.Rules {
			t.Errorf("Xid %d: %s %s, want that of %s", code, got.Severity, got.Action, gravest.Sub)
		}
		// An error that the table does not have, and which the driver calls fatal.
		e.Source, e.Sub = kernellog.Name, collector.SubFatal
		if fatal, _ := c.Lookup(&e); fatal != got {
			t.Errorf("Xid %d: fatal is judged as %+v", code, fatal)
		}
		if strings.Contains(got.Text, "the sub-code is unknown") != (gravest.Sub != "") {
			t.Errorf("Xid %d: %s", code, got.Text)
		}
	}
}
