//go:build linux && cgo

package nvidia

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callSRAM      = function("nvmlDeviceGetSramEccErrorStatus")
	callHistogram = function("nvmlDeviceGetRowRemapperHistogram")
	callRemapped  = function("nvmlDeviceGetRemappedRows")
	callRetired   = variants(2, "nvmlDeviceGetRetiredPages")
	callPending   = function("nvmlDeviceGetRetiredPagesPendingStatus")
)

// eccCounter is one of nvmlDeviceGetMemoryErrorCounter's counters.
type eccCounter struct {
	call     *call
	severity nvml.MemoryErrorType
	location nvml.MemoryLocation
	labels   []string
}

// eccFamily is the counters of one family: by location, and the sums for boards
// without locations.
type eccFamily struct {
	metric   *collector.Metric
	counter  nvml.EccCounterType
	counters []eccCounter
	sums     []eccCounter
}

// The entries of eccFamilies.
const (
	volatile = iota
	aggregate
)

var eccFamilies = [...]eccFamily{
	volatile:  eccFamilyOf(collector.ECCErrors, nvml.VOLATILE_ECC),
	aggregate: eccFamilyOf(collector.ECCAggregateErrors, nvml.AGGREGATE_ECC),
}

func eccFamilyOf(m *collector.Metric, counter nvml.EccCounterType) eccFamily {
	locations := []struct {
		location nvml.MemoryLocation
		label    string
	}{
		{nvml.MEMORY_LOCATION_DRAM, "dram"},
		{nvml.MEMORY_LOCATION_SRAM, "sram"},
		{nvml.MEMORY_LOCATION_L1_CACHE, "l1_cache"},
		{nvml.MEMORY_LOCATION_L2_CACHE, "l2_cache"},
		{nvml.MEMORY_LOCATION_REGISTER_FILE, "register_file"},
		{nvml.MEMORY_LOCATION_TEXTURE_MEMORY, "texture_memory"},
		{nvml.MEMORY_LOCATION_TEXTURE_SHM, "texture_shm"},
		{nvml.MEMORY_LOCATION_CBU, "cbu"},
	}
	f := eccFamily{metric: m, counter: counter}
	for severity, name := range []string{nvml.MEMORY_ERROR_TYPE_CORRECTED: "corrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED: "uncorrected"} {
		for _, l := range locations {
			f.counters = append(f.counters, eccCounter{
				call: function("nvmlDeviceGetMemoryErrorCounter"), severity: nvml.MemoryErrorType(severity),
				location: l.location, labels: []string{name, l.label},
			})
		}
		f.sums = append(f.sums, eccCounter{
			call: function("nvmlDeviceGetTotalEccErrors"), severity: nvml.MemoryErrorType(severity), labels: []string{name, "all"},
		})
	}
	return f
}

func (g *gpu) readECC(d *collector.Device, f *eccFamily) {
	a, h := &g.asker, g.handle
	fine := false
	for i := range f.counters {
		c := &f.counters[i]
		f.read(c, d, a, h)
		fine = fine || !a.never(c.call)
	}
	if fine {
		return
	}
	for i := range f.sums {
		c := &f.sums[i]
		if n, ok := ask(a, c.call, func() (uint64, nvml.Return) { return h.GetTotalEccErrors(c.severity, f.counter) }); ok {
			set64(d, f.metric, n, one, c.labels...)
		}
	}
}

// read reads the counter of a location.
func (f *eccFamily) read(c *eccCounter, d *collector.Device, a *asker, h nvml.Device) {
	n, ok := ask(a, c.call, func() (uint64, nvml.Return) {
		return h.GetMemoryErrorCounter(c.severity, f.counter, c.location)
	})
	if ok {
		set64(d, f.metric, n, one, c.labels...)
	}
}

// readInstanceECC reads the counters that NVML has by MIG device: uncorrected
// volatile errors outside the DRAM.
func (m *migDevice) readInstanceECC(d *collector.Device) {
	f := &eccFamilies[volatile]
	for i := range f.counters {
		c := &f.counters[i]
		if c.severity != nvml.MEMORY_ERROR_TYPE_UNCORRECTED || c.location == nvml.MEMORY_LOCATION_DRAM {
			continue
		}
		f.read(c, d, &m.asker, m.handle)
	}
}

var (
	labelCurrent     = []string{"current"}
	labelPending     = []string{"pending"}
	labelCorrected   = []string{"corrected"}
	labelUncorrected = []string{"uncorrected"}
	labelOther       = []string{"other"}
)

func (g *gpu) readSRAM(d *collector.Device) {
	if s, ok := ask(&g.asker, callSRAM, g.handle.GetSramEccErrorStatus); ok {
		d.SetBool(collector.SRAMThreshold, s.BThresholdExceeded != 0)
	}
}

var labelSpare = [...][]string{{"max"}, {"high"}, {"partial"}, {"low"}, {"none"}}

// readBanks reads how many spare rows the banks of the memory have left.
func (g *gpu) readBanks(d *collector.Device) {
	if hist, ok := ask(&g.asker, callHistogram, g.handle.GetRowRemapperHistogram); ok {
		for i, n := range [...]uint32{hist.Max, hist.High, hist.Partial, hist.Low, hist.None} {
			set32(d, collector.RowRemapBanks, n, one, labelSpare[i]...)
		}
	}
}

// readRemaps reads the remapped rows of a GPU without fields 142 to 145, which are
// read in every round.
func (g *gpu) readRemaps(d *collector.Device) {
	a, h := &g.asker, g.handle
	if g.fast.has(nvml.FI_DEV_REMAPPED_COR) || g.fast.has(nvml.FI_DEV_REMAPPED_FAILURE) {
		return
	}
	type remapped struct {
		corrected, uncorrected int
		pending, failed        bool
	}
	r, ok := ask(a, callRemapped, func() (r remapped, ret nvml.Return) {
		r.corrected, r.uncorrected, r.pending, r.failed, ret = h.GetRemappedRows()
		return r, ret
	})
	if ok {
		d.Set(collector.RowRemaps, float64(r.corrected), labelCorrected...)
		d.Set(collector.RowRemaps, float64(r.uncorrected), labelUncorrected...)
		d.SetBool(collector.RowRemapPending, r.pending)
		d.SetBool(collector.RowRemapFailed, r.failed)
	}
}

// readRetired reads the retired pages of GPUs before Ampere.
func (g *gpu) readRetired(d *collector.Device) {
	a, h := &g.asker, g.handle
	for i, cause := range []nvml.PageRetirementCause{
		nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
	} {
		pages, ok := ask(a, callRetired[i], func() ([]uint64, nvml.Return) { return h.GetRetiredPages(cause) })
		if ok {
			d.Set(collector.RetiredPages, float64(len(pages)), [][]string{labelCorrected, labelUncorrected}[i]...)
		}
	}
	if pending, ok := ask(a, callPending, h.GetRetiredPagesPendingStatus); ok {
		d.SetBool(collector.RetiredPagesPending, pending == nvml.FEATURE_ENABLED)
	}
}
