//go:build linux && cgo

package nvidia

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// plain is a field whose value is the reading.
func plain(id uint32, m *collector.Metric, u unit, labels ...string) field {
	return field{id: id, metric: m, unit: u, labels: labels}
}

// powerScope is a field of power of more or less than the GPU.
func powerScope(id, scope uint32, label string) field {
	f := plain(id, collector.PowerScope, milli, label)
	f.scope = scope
	return f
}

// fastFields are read in every round. Fields that the driver reads together are
// adjacent.
var fastFields = []field{
	{id: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, metric: collector.RecoveryAction, use: setRecoveryAction},

	plain(nvml.FI_DEV_POWER_INSTANT, collector.PowerWatts, milli),
	powerScope(nvml.FI_DEV_POWER_INSTANT, nvml.POWER_SCOPE_MODULE, "module"),

	plain(nvml.FI_DEV_PERF_POLICY_POWER, collector.ThrottleSeconds, nano, "sw_power_cap"),
	plain(nvml.FI_DEV_PERF_POLICY_SYNC_BOOST, collector.ThrottleSeconds, nano, "sync_boost"),
	plain(nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT, collector.ThrottleSeconds, nano, "board_limit"),
	plain(nvml.FI_DEV_PERF_POLICY_RELIABILITY, collector.ThrottleSeconds, nano, "reliability"),
	plain(nvml.FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, collector.ThrottleSeconds, nano, "below_app_clocks"),
	plain(nvml.FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, collector.ThrottleSeconds, nano, "below_base_clocks"),
	plain(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, collector.ThrottleSeconds, nano, "sw_thermal"),
	plain(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, collector.ThrottleSeconds, nano, "hw_thermal"),
	plain(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, collector.ThrottleSeconds, nano, "hw_power_brake"),

	plain(nvml.FI_DEV_REMAPPED_COR, collector.RowRemaps, one, "corrected"),
	plain(nvml.FI_DEV_REMAPPED_UNC, collector.RowRemaps, one, "uncorrected"),
	plain(nvml.FI_DEV_REMAPPED_PENDING, collector.RowRemapPending, one),
	plain(nvml.FI_DEV_REMAPPED_FAILURE, collector.RowRemapFailed, one),
	plain(nvml.FI_DEV_BANK_REMAPPER_HISTOGRAM_MAX, collector.BankRemapGroups, one, "max"),
	plain(nvml.FI_DEV_BANK_REMAPPER_HISTOGRAM_NONE, collector.BankRemapGroups, one, "none"),
	plain(nvml.FI_DEV_PENDING_BANK_REMAPPING, collector.BankRemapPending, one),
}

// pacedFields are not read in every round, and neither is what more reads: nothing is
// judged by one of their values within seconds, and each call costs a driver CPU time.
// On an H100, energy takes 3.3 ms and the PCIe counters 3.1 ms of the 8 ms of all fields;
// memory temperature and average power one to three on an RTX 5090, measured by others.
// Energy is charged to pods.
var pacedFields = [...]struct {
	every  time.Duration
	more   func(g *gpu, b *batch, d *collector.Device)
	fields []field
}{
	{2 * time.Second, (*gpu).readEnergy, []field{plain(nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION, collector.EnergyJoules, milli)}},
	{steadyInterval, (*gpu).readSteady, []field{
		plain(nvml.FI_DEV_MEMORY_TEMP, collector.TemperatureCelsius, one, "memory"),
		plain(nvml.FI_DEV_POWER_AVERAGE, collector.PowerAverage, milli),
		powerScope(nvml.FI_DEV_POWER_AVERAGE, nvml.POWER_SCOPE_MEMORY, "memory"),

		plain(nvml.FI_DEV_PCIE_REPLAY_COUNTER, collector.PCIeReplays, one),
		plain(nvml.FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, collector.PCIeErrors, one, "replay_rollover"),
		plain(nvml.FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER, collector.PCIeErrors, one, "l0_to_recovery"),
		plain(nvml.FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, collector.PCIeErrors, one, "correctable"),
		plain(nvml.FI_DEV_PCIE_COUNT_NAKS_RECEIVED, collector.PCIeErrors, one, "nak_received"),
		plain(nvml.FI_DEV_PCIE_COUNT_RECEIVER_ERROR, collector.PCIeErrors, one, "receiver"),
		plain(nvml.FI_DEV_PCIE_COUNT_BAD_TLP, collector.PCIeErrors, one, "bad_tlp"),
		plain(nvml.FI_DEV_PCIE_COUNT_NAKS_SENT, collector.PCIeErrors, one, "nak_sent"),
		plain(nvml.FI_DEV_PCIE_COUNT_BAD_DLLP, collector.PCIeErrors, one, "bad_dllp"),
		plain(nvml.FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, collector.PCIeErrors, one, "non_fatal"),
		plain(nvml.FI_DEV_PCIE_COUNT_FATAL_ERROR, collector.PCIeErrors, one, "fatal"),
		plain(nvml.FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ, collector.PCIeErrors, one, "unsupported_request"),
		plain(nvml.FI_DEV_PCIE_COUNT_LCRC_ERROR, collector.PCIeErrors, one, "lcrc"),
		plain(nvml.FI_DEV_PCIE_COUNT_LANE_ERROR, collector.PCIeErrors, one, "lane"),
	}},
}

// thermalPolicy replaces both thermal reasons on drivers without separate
// fields.
var thermalPolicy = plain(nvml.FI_DEV_PERF_POLICY_THERMAL, collector.ThrottleSeconds, nano, "thermal")

// slowFields change by an operator or a firmware update only.
var slowFields = []field{
	plain(nvml.FI_DEV_POWER_CURRENT_LIMIT, collector.PowerLimit, milli, "enforced"),
	plain(nvml.FI_DEV_POWER_REQUESTED_LIMIT, collector.PowerLimit, milli, "requested"),
	plain(nvml.FI_DEV_POWER_DEFAULT_LIMIT, collector.PowerLimit, milli, "default"),
	plain(nvml.FI_DEV_POWER_MIN_LIMIT, collector.PowerLimit, milli, "min"),
	plain(nvml.FI_DEV_POWER_MAX_LIMIT, collector.PowerLimit, milli, "max"),
	plain(nvml.FI_PWR_SMOOTHING_HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING, collector.PowerSmoothingLifetime, percent),

	marginField(nvml.FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, limitMaxOperating),
	marginField(nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, limitSlowdown),
	marginField(nvml.FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, limitShutdown),
	marginField(nvml.FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, limitMemory),

	{id: nvml.FI_DEV_NVLINK_LINK_COUNT, metric: collector.NVLinkUp, use: func(g *gpu, d *collector.Device, v float64) {
		g.links.count = boundedLinks(d, collector.NVLinkUp, v)
	}},
	{id: nvml.FI_DEV_C2C_LINK_COUNT, metric: collector.C2CErrors, use: func(g *gpu, d *collector.Device, v float64) {
		g.c2c.count = boundedLinks(d, collector.C2CErrors, v)
	}},
}

// boundedLinks returns the number of links that are read, and counts that it is less
// than the driver's.
func boundedLinks(d *collector.Device, m *collector.Metric, v float64) int {
	if v > maxLinks {
		d.Reject(m, collector.RejectRange)
	}
	return int(min(v, maxLinks))
}

func marginField(id uint32, limit int) field {
	return field{id: id, metric: collector.TemperatureMargin, signed: true, use: func(g *gpu, _ *collector.Device, v float64) {
		g.offsets[limit] = v
	}}
}

// recoveryActions are the values of field 230, in order. The values of R615, from
// firstNewAction on, have a series only while they are recommended.
var recoveryActions = [...][]string{
	{"none"}, {"reset"}, {"reboot"}, {"drain_p2p"}, {"drain_and_reset"}, {"recover_imex_domain"}, {"bus_reset"}, {"system_reboot"},
}

const firstNewAction = 6

func setRecoveryAction(_ *gpu, d *collector.Device, v float64) {
	if v < 0 || v >= math.MaxUint8 {
		d.Reject(collector.RecoveryAction, collector.RejectRange) // no enumeration
		return
	}
	known := false
	for i, labels := range recoveryActions {
		recommended := v == float64(i)
		known = known || recommended
		if recommended || i < firstNewAction {
			d.SetBool(collector.RecoveryAction, recommended, labels...)
		}
	}
	if !known {
		d.Set(collector.RecoveryAction, 1, labelOther...)
	}
}
