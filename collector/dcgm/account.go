package dcgm

import (
	"math"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// fieldAccounting is DCGM_FI_DEV_PROCESS_ACCOUNTING_STATS.
const fieldAccounting = 205

// accountRecord is a dcgmDevicePidAccountingStats_v1 with its GPU.
type accountRecord struct {
	gpu     uint32
	_       uint32
	version uint32
	pid     uint32
	// busy and copying are percentages of the process's lifetime.
	busy, copying uint32
	// memory is in bytes, start in µs since the epoch, active in µs, 0 while the
	// process runs.
	memory, start, active uint64
}

// accountVersion is dcgmDevicePidAccountingStats_version1.
const accountVersion = 1<<24 | 40

// A process's start must lie between these.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// maxLife is the longest plausible lifetime of a process.
const maxLife = 10 * 365 * 24 * time.Hour

// account returns the content of the record. It calls reject for each family
// with an impossible value. It is false for a record without a process.
func (r *accountRecord) account(reject func(m *collector.Metric, reason string)) (collector.Account, bool) {
	if r.version != accountVersion {
		reject(collector.AllocationProcessSeconds, collector.RejectType)
		return collector.Account{}, false
	}
	began, active := time.UnixMicro(int64(min(r.start, math.MaxInt64/1000))), time.Duration(min(r.active, math.MaxInt64/1000))*time.Microsecond
	if r.pid == 0 || r.pid > math.MaxInt32 || began.Before(earliest) || began.After(latest) || active > maxLife {
		reject(collector.AllocationProcessSeconds, collector.RejectRange)
		return collector.Account{}, false
	}
	a := collector.Account{PID: int(r.pid), Started: began}
	if active > 0 {
		a.Ended = began.Add(active)
	}
	number := func(m *collector.Metric, v, most, mark uint64, scale float64) *float64 {
		switch {
		case v >= mark:
			return nil // the driver's mark for not available, or DCGM's
		case v > most:
			reject(m, collector.RejectRange)
			return nil
		}
		return new(float64(v) * scale)
	}
	a.MemoryPeak = number(collector.AllocationProcessMemoryPeak, r.memory, 1<<50, blankInt64, 1)
	a.Compute = number(collector.AllocationProcessBusy, uint64(r.busy), 100, blankInt32, percent)
	a.Memory = number(collector.AllocationProcessBusy, uint64(r.copying), 100, blankInt32, percent)
	return a, true
}
