package collector

// Families about the completeness of the kernel log source. The Sampler counts
// the events that the log reports for devices.
var (
	KernelLogBegin = define(Metric{
		Name:  "accel_kernel_log_begin_timestamp_seconds",
		Help:  "Time of the first record that was read of the log, seconds since the epoch. Absent if no line of it has a time.",
		Kind:  Mark,
		Scope: PerNode,
		Range: timestamp,
		From:  []string{"Linux /dev/kmsg", "syslog"},
	})
	KernelLogLost = define(Metric{
		Name:  "accel_kernel_log_lost_records_total",
		Help:  "Records that the kernel overwrote before they were read, found by gaps in the sequence numbers.",
		Kind:  Counter,
		Scope: PerNode,
		From:  []string{"Linux /dev/kmsg: EPIPE and the sequence number after it"},
	})
	KernelLogMalformed = define(Metric{
		Name:   "accel_kernel_log_malformed_lines_total",
		Help:   "Lines that begin like a fault report and could not be parsed. A fault may be missing from the other families.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"event"},
		Values: []string{"event: xid, sxid"},
		From:   []string{"NVIDIA kernel modules by way of the kernel log"},
	})
)
