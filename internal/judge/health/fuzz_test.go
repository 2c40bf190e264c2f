package health_test

import (
	"errors"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// FuzzParse checks that each mistake in a rejected file has a line number, and that a
// Judge can use an accepted catalogue.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "xid: [{code: 95, severity: none}]", "xid:\n  - {code: 145, sub: rlw_remap_0x40, ends: 2h}",
		"sxid: [{code: 12028, action: replace}]", "events: [{event: poison, grace: 2m}, {event: hang, ends: load}]", "unknown: {severity: none, ends: answer, text: x}",
		"conditions: [{reason: row_remap_pending, severity: none}]", "sources: {a: b}", "&a [*a]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := health.Parse("f.yaml", data)
		if err != nil {
			mistakes, ok := errors.AsType[strict.Mistakes](err)
			if !ok || len(mistakes) == 0 || c != nil {
				t.Fatalf("%T %v, %v", err, err, c)
			}
			for _, m := range mistakes {
				if m.Line < 1 || m.Text == "" {
					t.Errorf("%+v", m)
				}
			}
			return
		}
		for _, e := range c.Entries() {
			if !utf8.ValidString(e.Text) || e.Severity > health.Failed {
				t.Errorf("%+v", e)
			}
		}
		j := health.New(c, health.Options{})
		s := snapshot(start, news(xid(95), xid(145, sub("RLW_REMAP:0x40")), xid(777), event(collector.EventPoison)), gpu(start, set(collector.RowRemapPending, 1)))
		j.Judge(s)
		if v := s.Devices[0].Verdict; v == nil || (v.State == "failed") != slices.ContainsFunc(v.Reasons, func(r collector.Reason) bool { return r.Severity == "failed" }) {
			t.Errorf("%+v", v)
		}
	})
}
