package collector

// Families of health verdicts.
var (
	DeviceHealth = define(Metric{
		Name:   "accel_device_health",
		Help:   "Health verdict on a device: 1 for the current state, 0 for the others. A partition is never healthier than its parent. The reasons are in accel_device_health_reason.",
		Kind:   Gauge,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state: healthy, degraded (running work continues), failed (running work stops, or its results cannot be trusted), unknown (the device cannot be observed)"},
		From:   []string{"exporter, by the catalogue of internal/judge/health"},
		Level:  inForce,
	})
	DeviceAction = define(Metric{
		Name:   "accel_device_action",
		Help:   "Recommended action: 1 for the current action, 0 for the others. An action that the driver recommends takes precedence. Only for whole devices, because a partition is repaired through its parent.",
		Kind:   Gauge,
		Labels: []string{"action"},
		Range:  boolean,
		Values: []string{"action: none, inspect, update_software, restart_app, drain_p2p, recover_imex_domain, reprogram (an FPGA), drain_and_reset, reset, restart_vm, reboot, replace"},
		From:   []string{"exporter, by the catalogue of internal/judge/health"},
		Level:  inForce,
	})
	DeviceHealthReason = define(Metric{
		Name:   "accel_device_health_reason",
		Help:   "1 for each reason for the health state of the device. The label severity is the state that this reason alone causes. Absent if the reason does not apply.",
		Kind:   Gauge,
		Labels: []string{"reason", "severity"},
		Range:  boolean,
		Values: []string{
			"reason of an Xid or SXid: xid_N, sxid_N (its number), xid_N_SUB (with the sub-code that the catalogue has, as in xid_145_rlw_remap_0x4), xid_unknown, sxid_unknown (a number that the catalogue does not have)",
			"severity: degraded, failed, unknown",
		},
		From: []string{"exporter, by the catalogue of internal/judge/health"},
	})
	DeviceIncident = define(Metric{
		Name:   "accel_device_incident_timestamp_seconds",
		Help:   "What a person must know about a whole device that is degraded or failed, in the labels, for messages of alerts; absent for all other devices. The value is the time at which a label last changed, seconds since the epoch, so the greatest value of several is the latest.",
		Kind:   Gauge,
		Labels: []string{"kind", "state", "summary", "reasons", "action", "pods", "since", "index", "model", "serial", "pci_address"},
		Range:  timestamp,
		Values: []string{
			"kind: failed, limit_critical (a sensor is beyond a limit at which the device shuts down), reset_due (it works and needs a reset), replace_soon (it works and must be replaced), throttled (by heat or power, without another reason), degraded (all others)",
			"summary: one line of at most 118 bytes: device, reason, pod, action",
			"reasons: up to 6 of accel_device_health_reason, the gravest first",
			"pods: namespace/pod of the first 8 pods that have held the device during the incident",
			"since: start of the incident; interruptions of less than an hour do not end it",
		},
		From: []string{"exporter, by the catalogue of internal/judge/health", "kubelet PodResources List"},
	})
	DeviceBundle = define(Metric{
		Name:   "accel_device_bundle_timestamp_seconds",
		Help:   "Latest bundle of evidence of a whole device. The value is the time at which a label last changed, seconds since the epoch, so the greatest value of several is the latest. Absent for a device without one, and without --bundle.directory.",
		Kind:   Mark,
		Labels: []string{"state", "location", "sha256"},
		Range:  timestamp,
		Values: []string{
			"state: recording (the minute after the fault), unsent (in the directory, and not yet at --bundle.url), saved (in the directory), sent (at the URL), failed (could not be written)",
			"location: path on the node, or URL without its query; empty while there is none",
		},
		From: []string{"exporter"},
	})
	FaultsUnknown = define(Metric{
		Name:  "accel_device_faults_unknown_before_timestamp_seconds",
		Help:  "Faults of the device from before this time that only an event reported, such as an Xid, are unknown, seconds since the epoch: neither --path.state nor the kernel log has them. Absent if they are known, or ended with a boot, a reset or a load of the driver since, or if the driver recommends no recovery action.",
		Kind:  Mark,
		Range: timestamp,
		From:  []string{"exporter"},
	})
	DeviceFailures = define(Metric{
		Name: "accel_device_failures_total",
		Help: "Times that the verdict on a device became failed since the exporter started. It must have been healthy in between.",
		Kind: Counter,
		From: []string{"exporter"},
	})
)
