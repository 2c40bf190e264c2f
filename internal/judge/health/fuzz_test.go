package health_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// dice reads choices from fuzz data. At the end of the data, every choice is 0.
type dice struct{ data []byte }

func (d *dice) below(n int) int {
	if len(d.data) < 2 {
		return 0
	}
	v := int(binary.LittleEndian.Uint16(d.data))
	d.data = d.data[2:]
	return v % n
}

func pick[T any](d *dice, from []T) T { return from[d.below(len(from))] }

var (
	fuzzIDs    = []string{gpuID, "GPU-2", gpuAt, "0000:99:00.0", "MIG-1", ""}
	fuzzValues = []string{"", "none", "reset", "reboot", "uncorrected", "completed", "pcie", "nvidia", "lost", "stuck", "fatal", "0", "1"}
	fuzzKinds  = []collector.EventKind{
		collector.EventXid, collector.EventXid, collector.EventXid, collector.EventSXid, collector.EventBusLoss,
		collector.EventDriverLoaded, collector.EventAER, collector.EventUnavailable, collector.EventPoisonFatal, "odd",
	}
	fuzzCodes = []uint64{13, 45, 48, 63, 79, 95, 119, 145, 154, 162, 163, 777, 999, 10004, 10005, 22003, 0, 1 << 63}
	fuzzSubs  = []string{"", "RLW_REMAP:0x40", "RLW_REMAP:0x100", "NETIR_LINK_DOWN:0x21", "fatal/DLP", "nonfatal", "\xff\n"}
)

func (d *dice) event(now time.Time) collector.Event {
	e := collector.Event{
		Time: now.Add(time.Duration(d.below(7200)-3600) * time.Second), Device: pick(d, fuzzIDs), Kind: pick(d, fuzzKinds),
		Code: pick(d, fuzzCodes), Sub: pick(d, fuzzSubs), Cause: pick(d, []uint64{0, 0, 45, 95, 31}), Action: pick(d, []string{"", "", "reset", "none", "odd"}),
		Past: d.below(4) == 0,
	}
	if d.below(4) == 0 {
		e.Witnesses = []string{"nvidia", "kernellog"}
	}
	return e
}

func (d *dice) device(now time.Time, id string, rows []*collector.Metric) collector.Device {
	out := collector.Device{
		ID: id, Parent: pick(d, []string{"", "", "", gpuID, "gone"}), PCI: pick(d, fuzzIDs), Witness: d.below(8) == 0,
		Down: pick(d, []string{"", "", "", collector.ReasonLost, collector.ReasonStuck}), Functions: []string{pick(d, fuzzIDs)},
	}
	if d.below(4) > 0 {
		out.Sampled = now
		up(&out)
	}
	for range d.below(24) {
		m := pick(d, rows)
		labels := make([]string, len(m.Labels))
		for i := range labels {
			labels[i] = pick(d, fuzzValues)
		}
		if d.below(16) == 0 {
			labels = nil // a bug of a Source
		}
		out.Readings = append(out.Readings, collector.Reading{Metric: m, Labels: labels, Value: float64(d.below(4)) - 1})
	}
	return out
}

// FuzzJudge checks that for any Snapshot, every device has exactly one state and one
// action, a device that is not healthy has a reason, a partition is never healthier
// than its parent, and published readings do not change.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{})
	for seed := range 8 {
		data := make([]byte, 600)
		x := uint32(seed*7919 + 1)
		for i := range data {
			x = x*1664525 + 1013904223
			data[i] = byte(x >> 24)
		}
		f.Add(data)
	}
	var rows []*collector.Metric
	judged := []*collector.Metric{collector.DeviceHealth, collector.DeviceAction, collector.DeviceHealthReason, collector.DeviceFailures}
	for _, m := range collector.Table() {
		if m.Scope == collector.PerDevice && m.Kind != collector.Histogram && !slices.Contains(judged, m) {
			rows = append(rows, m)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &dice{data}
		j := health.New(health.Builtin(), health.Options{Boot: start.Add(-time.Duration(d.below(3600)) * time.Second)})
		now := start
		for range 1 + d.below(8) {
			now = now.Add(time.Duration(d.below(900)) * time.Second)
			s := &collector.Snapshot{Time: now}
			for range d.below(6) {
				s.News = append(s.News, d.event(now))
			}
			for _, id := range fuzzIDs[:d.below(len(fuzzIDs))] {
				s.Devices = append(s.Devices, d.device(now, id, rows))
			}
			was := slices.Clone(s.Devices)
			j.Judge(s)
			consistent(t, s)
			for i := range s.Devices {
				if !slices.EqualFunc(was[i].Readings, s.Devices[i].Readings[:len(was[i].Readings)], func(a, b collector.Reading) bool { return a.Metric == b.Metric && a.Value == b.Value }) {
					t.Fatal("the readings of a Source have changed")
				}
				inherits(t, s, &s.Devices[i])
			}
		}
	})
}

func inherits(t *testing.T, s *collector.Snapshot, d *collector.Device) {
	at := slices.IndexFunc(s.Devices, func(p collector.Device) bool { return p.ID == d.Parent && p.Parent == "" })
	if at < 0 || d.Parent == "" {
		return
	}
	if p := s.Devices[at].Verdict.State; p != "unknown" && worse(p, d.Verdict.State) {
		t.Errorf("the parent is %s, the partition %s", p, d.Verdict.State)
	}
}

// FuzzParse checks that each mistake in a rejected file has a line number, and that a
// Judge can use an accepted catalogue.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "xid: [{code: 95, severity: none}]", "xid:\n  - {code: 145, sub: rlw_remap_0x40, ends: 2h, rules: driver, while: [row_remap_pending], cures: [3]}",
		"sxid: [{code: 12028, action: replace}]", "events: [{event: poison, as: 95, heals: [reset, hang], grace: 2m}, {event: hang, ends: load}]", "unknown: {severity: none, ends: answer, text: x}",
		"conditions:\n  - {reason: a, family: accel_pcie_link_width_lanes, test: below, than: accel_pcie_link_width_max_lanes, for: 5m, severity: failed, action: reset}",
		"conditions: [{reason: row_remap_pending, severity: none}]", "sources: {a: b}", "xid: [{code: 95, while: [zz]}]", "&a [*a]",
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
