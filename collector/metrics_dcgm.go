package collector

import "math"

// anyNumber is the range of a value of unknown meaning. DCGM's sentinels for
// "no value" lie outside it.
var anyNumber = Range{-math.MaxInt64 / 2, math.MaxInt64 / 2}

// Families that only DCGM provides. A family that NVML provides too lists DCGM
// in its own row.
var (
	DCGMInfo = define(Metric{
		Name:   "accel_dcgm_info",
		Help:   "Versions of DCGM and mode of the connection; value 1.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"mode", "version", "host_engine_version"},
		Values: []string{"mode: embedded, standalone"},
		From:   []string{"DCGM dcgmVersionInfo, dcgmHostengineVersionInfo"},
	})
	DCGMField = define(Metric{
		Name:   "accel_dcgm_field_value",
		Help:   "Value of a configured DCGM field, in the unit that the label unit names.",
		Kind:   Gauge,
		Labels: []string{"field", "entity", "unit"},
		Range:  anyNumber,
		Values: []string{"field: DCGM's name, DCGM_FI_…", "entity: empty for the device itself, else link-N, core-N", "unit: in DCGM's terms; empty where the field has none"},
		From:   []string{"DCGM dcgmEntitiesGetLatestValues, fields of sources.dcgm.fields and --dcgm.fields"},
	})
	DCGMFieldTotal = define(Metric{
		Name:   "accel_dcgm_field_total",
		Help:   "Value of a configured DCGM field that is a counter, in the unit that the label unit names.",
		Kind:   Counter,
		Labels: []string{"field", "entity", "unit"},
		Range:  Range{0, math.MaxInt64 / 2},
		Values: []string{"field, entity, unit: as in accel_dcgm_field_value"},
		From:   []string{"DCGM dcgmEntitiesGetLatestValues, fields of sources.dcgm.fields and --dcgm.fields"},
	})
	DCGMFieldInfo = define(Metric{
		Name:   "accel_dcgm_field_info",
		Help:   "Text of a configured DCGM field; value 1.",
		Kind:   Info,
		Labels: []string{"field", "value"},
		From:   []string{"DCGM dcgmEntitiesGetLatestValues, fields of type string"},
	})
	DCGMProfiling = define(Metric{
		Name:   "accel_dcgm_profiling_up",
		Help:   "1 if DCGM delivers profiling counters for the device, else 0 with the reason. Absent if profiling is off.",
		Kind:   Gauge,
		Labels: []string{"reason"},
		Range:  boolean,
		Values: []string{"reason: empty when up, else not_supported, in_use (another tool uses them), no_permission, paused (no value arrives), refused"},
		From:   []string{"DCGM dcgmProfGetSupportedMetricGroups, dcgmWatchFields, fields 1001 to 1016"},
	})
	DCGMHealth = define(Metric{
		Name:   "accel_dcgm_health",
		Help:   "Result of DCGM's passive health check: 1 for the state of the watch, 0 for the others. A state gets better after ten checks. Incidents of IMEX are left out: DCGM reports them on nodes without an IMEX domain too.",
		Kind:   Gauge,
		Labels: []string{"watch", "state"},
		Range:  boolean,
		Values: []string{"watch: pcie, nvlink, pmu, mcu, memory, sm, inforom, thermal, power, driver, on switches nvswitch_non_fatal, nvswitch_fatal; all: the worst of them, and of Xids that DCGM files under none", "state: pass, warn, fail"},
		From:   []string{"DCGM dcgmHealthCheck, at the interval of --dcgm.health-interval"},
		Level:  inForce,
	})
	NVSwitchResetRequired = define(Metric{
		Name:  "accel_nvswitch_reset_required",
		Help:  "1 if the NVSwitch requires a reset.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"DCGM field 864"},
	})
	CPUUtilization = define(Metric{
		Name:   "accel_cpu_utilization_ratio",
		Help:   "Share of time that the CPU spent in the mode, 0 to 1, over all of its cores.",
		Kind:   Gauge,
		Labels: []string{"mode"},
		Range:  ratio,
		Values: []string{"mode: user, nice, system, irq"},
		From:   []string{"DCGM fields 1101 to 1104 (NVIDIA Grace)"},
	})
)
