package collector

// Families of the kernel log source: whether it can be trusted to have seen
// everything. What the log told of devices is counted by the Sampler.
var (
	KernelLogInfo = define(Metric{
		Name:   "accel_kernel_log_info",
		Help:   "The kernel log that is followed; value 1. Fallback says why it is not the one that was asked for.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"path", "fallback"},
		Values: []string{"fallback: empty where path is the log that was asked for, else absent, denied, error"},
		From:   []string{"exporter"},
	})
	KernelLogRecords = define(Metric{
		Name:  "accel_kernel_log_records_total",
		Help:  "Records read from the kernel log since the exporter started, those that it held then included.",
		Kind:  Counter,
		Scope: PerNode,
		From:  []string{"Linux /dev/kmsg, one record each; other logs, one line each"},
	})
	KernelLogLost = define(Metric{
		Name:  "accel_kernel_log_lost_records_total",
		Help:  "Records that the kernel overwrote before they could be read, by the gap in their sequence numbers.",
		Kind:  Counter,
		Scope: PerNode,
		From:  []string{"Linux /dev/kmsg: EPIPE and the sequence number after it"},
	})
	KernelLogMalformed = define(Metric{
		Name:   "accel_kernel_log_malformed_lines_total",
		Help:   "Lines that begin like a report of a fault and could not be understood: a fault may be missing from the other families.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"event"},
		Values: []string{"event: xid, sxid"},
		From:   []string{"NVIDIA kernel modules by way of the kernel log"},
	})
)
