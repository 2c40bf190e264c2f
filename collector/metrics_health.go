package collector

// Families of the verdict on devices.
var (
	DeviceHealth = define(Metric{
		Name:   "accel_device_health",
		Help:   "Verdict on a device: 1 for the state it is in, 0 for the others. A partition is never better than its parent. What speaks against the device is in accel_device_health_reason.",
		Kind:   Gauge,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state: healthy, degraded (what runs on it goes on), failed (it does not, or its results cannot be trusted), unknown (nobody can look at it)"},
		From:   []string{"exporter, by the catalogue in docs/health.md"},
	})
	DeviceAction = define(Metric{
		Name:   "accel_device_action",
		Help:   "What would bring the device back to health: 1 for the action asked for, 0 for the others. The driver's own demand goes before all others. Of whole devices, which is where a partition is mended.",
		Kind:   Gauge,
		Labels: []string{"action"},
		Range:  boolean,
		Values: []string{"action: none, inspect, update_software, restart_app, drain_p2p, recover_imex_domain, reprogram (an FPGA), drain_and_reset, reset, restart_vm, reboot, replace"},
		From:   []string{"exporter, by the catalogue in docs/health.md"},
	})
	DeviceHealthReason = define(Metric{
		Name:   "accel_device_health_reason",
		Help:   "1 for each fact that speaks against the device, with the state it alone would put the device in. Absent where the fact is not so.",
		Kind:   Gauge,
		Labels: []string{"reason", "severity"},
		Range:  boolean,
		Values: []string{
			"reason for an Xid or SXid: xid_N, sxid_N (its number), xid_N_SUB (with the sub-code that docs/health.md has, as in xid_145_rlw_remap_0x4), xid_unknown, sxid_unknown (a number that the catalogue does not have)",
			"severity: degraded, failed, unknown",
		},
		From: []string{"exporter, by the catalogue in docs/health.md"},
	})
	DeviceFailures = define(Metric{
		Name: "accel_device_failures_total",
		Help: "Times that the verdict on a device became failed since the exporter started. It must have been healthy in between.",
		Kind: Counter,
		From: []string{"exporter"},
	})
	DeviceRecovery = define(Metric{
		Name:    "accel_device_recovery_seconds",
		Help:    "How long a device took from failed to healthy again. There from the first failure on.",
		Kind:    Histogram,
		Buckets: []float64{10, 30, 60, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600},
		From:    []string{"exporter"},
	})
)
