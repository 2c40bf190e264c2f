package dcgm

import (
	"math"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// row maps a DCGM field to a metric family.
type row struct {
	field  uint16
	metric *collector.Metric
	// scale turns DCGM's unit into the family's.
	scale float64
	// labels are the family's own; for links the number of the link precedes
	// them.
	labels []string
}

func feed(field uint16, m *collector.Metric, scale float64, labels ...string) row {
	return row{field: field, metric: m, scale: scale, labels: labels}
}

const (
	asIs     = 1
	percent  = 0.01
	milli    = 1e-3
	nano     = 1e-9
	mega     = 1e6
	mebibyte = 1 << 20
)

// of converts a value. A mean over cycles may slightly exceed the whole; it is
// capped.
func (r *row) of(v float64) float64 {
	if r.scale < 1 {
		v /= math.Round(1 / r.scale) // 95 % is 0.95, as it is of NVML
	} else {
		v *= r.scale
	}
	if (r.metric == collector.ActivityRatio || r.metric == collector.OccupancyRatio) && v > 1 && v <= 1.01 {
		return 1
	}
	return v
}

// profilingRows are means over the time since the host engine's last update, in
// the families that NVML's GPM fills on newer boards. The byte fields are
// rates.
var profilingRows = []row{
	feed(1001, collector.ActivityRatio, asIs, "graphics"),
	feed(1002, collector.ActivityRatio, asIs, "sm"),
	feed(1003, collector.OccupancyRatio, asIs),
	feed(1004, collector.ActivityRatio, asIs, "tensor"),
	feed(1005, collector.ActivityRatio, asIs, "dram"),
	feed(1006, collector.ActivityRatio, asIs, "fp64"),
	feed(1007, collector.ActivityRatio, asIs, "fp32"),
	feed(1008, collector.ActivityRatio, asIs, "fp16"),
	feed(1009, collector.PCIeTransmitRate, asIs),
	feed(1010, collector.PCIeReceiveRate, asIs),
	feed(1011, collector.NVLinkTransmitRate, asIs),
	feed(1012, collector.NVLinkReceiveRate, asIs),
	feed(1013, collector.ActivityRatio, asIs, "tensor_imma"),
	feed(1014, collector.ActivityRatio, asIs, "tensor_hmma"),
	feed(1015, collector.ActivityRatio, asIs, "tensor_dfma"),
	feed(1016, collector.ActivityRatio, asIs, "integer"),
}

// aloneRows are fields that NVML has too. They are read only without NVML: a
// counter that changes its origin would jump.
var aloneRows = []row{
	feed(100, collector.ClockHertz, mega, "sm"),
	feed(101, collector.ClockHertz, mega, "memory"),
	feed(140, collector.TemperatureCelsius, asIs, "memory"),
	feed(150, collector.TemperatureCelsius, asIs, "gpu"),
	feed(fieldPower, collector.PowerWatts, asIs),
	feed(fieldPowerAverage, collector.PowerAverage, asIs),
	feed(156, collector.EnergyJoules, milli),
	feed(202, collector.PCIeReplays, asIs),
	feed(203, collector.UtilizationRatio, percent, "compute"),
	feed(204, collector.UtilizationRatio, percent, "memory"),
	feed(206, collector.UtilizationRatio, percent, "encoder"),
	feed(207, collector.UtilizationRatio, percent, "decoder"),
	feed(240, collector.ThrottleSeconds, nano, "sw_power_cap"),
	feed(241, collector.ThrottleSeconds, nano, "thermal"),
	feed(242, collector.ThrottleSeconds, nano, "sync_boost"),
	feed(310, collector.ECCErrors, asIs, "corrected", "all"),
	feed(311, collector.ECCErrors, asIs, "uncorrected", "all"),
	feed(312, collector.ECCAggregateErrors, asIs, "corrected", "all"),
	feed(313, collector.ECCAggregateErrors, asIs, "uncorrected", "all"),
	feed(390, collector.RetiredPages, asIs, "corrected"),
	feed(391, collector.RetiredPages, asIs, "uncorrected"),
	feed(392, collector.RetiredPagesPending, asIs),
	feed(393, collector.RowRemaps, asIs, "uncorrected"),
	feed(394, collector.RowRemaps, asIs, "corrected"),
	feed(395, collector.RowRemapFailed, asIs),
	feed(396, collector.RowRemapPending, asIs),
}

// Fields of the power now and of its mean. A board without the former has the
// latter, or the power now under that number (before Ampere).
const (
	fieldPower        = 157
	fieldPowerAverage = 155
)

// memoryRows are the values that a MIG instance has; its clocks and power are
// the whole GPU's.
var memoryRows = []row{
	feed(250, collector.MemoryTotal, mebibyte),
	feed(251, collector.MemoryFree, mebibyte),
	feed(252, collector.MemoryUsed, mebibyte),
	feed(253, collector.MemoryReserved, mebibyte),
}

// wholeRows are the rows of a whole GPU.
var wholeRows = slices.Concat(aloneRows, memoryRows)

var switchRows = []row{
	feed(858, collector.TemperatureCelsius, asIs, "switch"),
	feed(859, collector.TemperatureLimit, asIs, "switch", "slowdown"),
	feed(860, collector.TemperatureLimit, asIs, "switch", "shutdown"),
	feed(864, collector.NVSwitchResetRequired, asIs),
}

// Fields whose value is the number of the last Xid or SXid.
const (
	fieldXid          = 230
	fieldSXidFatal    = 856
	fieldSXidNonFatal = 857
)

// xidOffBus is the Xid of a GPU that has fallen off the bus.
const xidOffBus = 79

// fieldLinkStatus is -1 unknown, 0 off, 1 safe, 2 active, 3 error.
const (
	fieldLinkStatus = 870
	linkActive      = 2
)

var linkRows = []row{
	feed(782, collector.NVLinkErrors, asIs, "fatal"),
	feed(783, collector.NVLinkErrors, asIs, "non_fatal"),
	feed(784, collector.NVLinkErrors, asIs, "replay"),
	feed(785, collector.NVLinkErrors, asIs, "recovery"),
	feed(786, collector.NVLinkErrors, asIs, "flit"),
	feed(787, collector.NVLinkErrors, asIs, "crc"),
	feed(788, collector.NVLinkErrors, asIs, "ecc"),
}

var cpuRows = []row{
	feed(1101, collector.CPUUtilization, asIs, "user"),
	feed(1102, collector.CPUUtilization, asIs, "nice"),
	feed(1103, collector.CPUUtilization, asIs, "system"),
	feed(1104, collector.CPUUtilization, asIs, "irq"),
	feed(1110, collector.TemperatureCelsius, asIs, "cpu"),
	feed(1111, collector.TemperatureLimit, asIs, "cpu", "warning"),
	feed(1112, collector.TemperatureLimit, asIs, "cpu", "critical"),
	feed(1130, collector.PowerWatts, asIs),
	feed(1131, collector.PowerLimit, asIs, "enforced"),
}

// Fields that identify an entity.
const (
	fieldName       = 50
	fieldSerial     = 53
	fieldUUID       = 54
	fieldPCI        = 57
	fieldCapability = 63 // major version in the upper 16 bits
	fieldDomain     = 866
	fieldBus        = 867
	fieldDevice     = 868
	fieldFunction   = 869
	fieldCPUModel   = 1141
)

// withGPM is the compute capability from which NVML has the profiling counters
// (Hopper).
const withGPM = 9

// fieldsOf returns the fields of rows, and more.
func fieldsOf(rows []row, more ...uint16) []uint16 {
	var list []uint16
	for i := range rows {
		list = append(list, rows[i].field)
	}
	return append(list, more...)
}

// rowOf returns the row of a field, nil where there is none.
func rowOf(rows []row, field uint16) *row {
	for i := range rows {
		if rows[i].field == field {
			return &rows[i]
		}
	}
	return nil
}
