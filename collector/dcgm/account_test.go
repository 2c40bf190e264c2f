package dcgm

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Values of a record are taken, missing ones are absent, and impossible ones
// are rejected.
func TestAccount(t *testing.T) {
	whole := accountRecord{version: accountVersion, pid: 42, busy: 50, copying: 7, memory: 1 << 30, start: 1_700_000_000_000_000, active: 90_000_000}
	began := time.UnixMicro(1_700_000_000_000_000)
	for name, c := range map[string]struct {
		change  func(*accountRecord)
		want    *collector.Account // nil: none
		rejects []string
	}{
		"ended": {func(*accountRecord) {}, &collector.Account{PID: 42, Started: began, Ended: began.Add(90 * time.Second), MemoryPeak: new(float64(1 << 30)), Compute: new(0.5), Memory: new(0.07)}, nil},
		"runs":  {func(r *accountRecord) { r.active = 0 }, &collector.Account{PID: 42, Started: began, MemoryPeak: new(float64(1 << 30)), Compute: new(0.5), Memory: new(0.07)}, nil},
		"NVML's not available": {
			func(r *accountRecord) { r.busy, r.copying, r.memory = math.MaxUint32, math.MaxUint32, math.MaxUint64 },
			&collector.Account{PID: 42, Started: began, Ended: began.Add(90 * time.Second)}, nil,
		},
		"DCGM's not supported": {
			func(r *accountRecord) { r.busy, r.copying, r.memory = blankInt32+2, blankInt32+2, blankInt64+2 },
			&collector.Account{PID: 42, Started: began, Ended: began.Add(90 * time.Second)}, nil,
		},
		"over the whole": {
			func(r *accountRecord) { r.busy, r.memory = 101, 1<<50+1 },
			&collector.Account{PID: 42, Started: began, Ended: began.Add(90 * time.Second), Memory: new(0.07)},
			[]string{"accel_allocation_process_memory_peak_bytes range", "accel_allocation_process_busy_seconds_total range"},
		},
		"another version":    {func(r *accountRecord) { r.version++ }, nil, []string{"accel_allocation_process_seconds_total type"}},
		"no process":         {func(r *accountRecord) { r.pid = 0 }, nil, []string{"accel_allocation_process_seconds_total range"}},
		"no start":           {func(r *accountRecord) { r.start = 0 }, nil, []string{"accel_allocation_process_seconds_total range"}},
		"a start to come":    {func(r *accountRecord) { r.start = math.MaxUint64 }, nil, []string{"accel_allocation_process_seconds_total range"}},
		"an endless life":    {func(r *accountRecord) { r.active = math.MaxUint64 }, nil, []string{"accel_allocation_process_seconds_total range"}},
		"a negative PID":     {func(r *accountRecord) { r.pid = 1 << 31 }, nil, []string{"accel_allocation_process_seconds_total range"}},
		"nothing, all of it": {func(r *accountRecord) { *r = accountRecord{} }, nil, []string{"accel_allocation_process_seconds_total type"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := whole
			c.change(&r)
			var rejects []string
			got, is := r.account(func(m *collector.Metric, reason string) { rejects = append(rejects, m.Name+" "+reason) })
			if is != (c.want != nil) {
				t.Fatalf("%v, %v", got, is)
			}
			if c.want != nil && !cmp.Equal(*c.want, got) {
				t.Error(cmp.Diff(*c.want, got))
			}
			if !slices.Equal(rejects, c.rejects) {
				t.Errorf("rejects %q, want %q", rejects, c.rejects)
			}
		})
	}
}

// FuzzAccount: for any record an account is plausible.
func FuzzAccount(f *testing.F) {
	f.Add(make([]byte, 48))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 48 {
			return
		}
		u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
		r := accountRecord{
			version: accountVersion, pid: u32(b[8:]), busy: u32(b[12:]), copying: u32(b[16:]),
			memory: u64(b[24:]), start: u64(b[32:]), active: u64(b[40:]),
		}
		a, is := r.account(func(*collector.Metric, string) {})
		if !is {
			return
		}
		for _, v := range []*float64{a.Compute, a.Memory} {
			if v != nil && (*v < 0 || *v > 1) {
				t.Errorf("%+v: utilization %v", r, *v)
			}
		}
		if a.PID <= 0 || !a.Ended.IsZero() && a.Ended.Before(a.Started) || !time.Unix(0, a.Started.UnixNano()).Equal(a.Started) ||
			!a.Ended.IsZero() && !time.Unix(0, a.Ended.UnixNano()).Equal(a.Ended) || a.MemoryPeak != nil && (*a.MemoryPeak < 0 || *a.MemoryPeak > 1<<50) {
			t.Errorf("%+v is %+v", r, a)
		}
	})
}
