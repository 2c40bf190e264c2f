package collector

// Families about the completeness of the kernel log source. The Sampler counts
// the events that the log reports for devices.
var (
	KernelLogInfo = define(Metric{
		Name:   "accel_kernel_log_info",
		Help:   "The kernel log that is read; value 1. The label fallback is the reason why it is not the configured one.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"path", "fallback"},
		Values: []string{"fallback: empty if path is the configured log, else absent, denied, error"},
		From:   []string{"exporter"},
	})
	KernelLogRecords = define(Metric{
		Name:  "accel_kernel_log_records_total",
		Help:  "Records read from the kernel log since the exporter started, including records that were logged before.",
		Kind:  Counter,
		Scope: PerNode,
		From:  []string{"Linux /dev/kmsg, one record each; other logs, one line each"},
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
