package collector

// Families that add up, by device, what others have by part or by number: one
// series in the place of many, for rules that look back over many devices.
var (
	XidEvents = define(Metric{
		Name:   "accel_gpu_xid_events_total",
		Help:   "Xid events of a GPU since the exporter started, by kind: accel_gpu_xid_errors_total added up by what the catalogue says of the numbers.",
		Kind:   Counter,
		Labels: []string{"kind"},
		Values: []string{"kind: hardware (the GPU itself, its firmware or its links), application (a mistake of a program), other (consequences of those, details of another Xid, whatever can be either, and numbers that the catalogue does not have)"},
		From:   []string{"exporter, by the catalogue in docs/health.md"},
	})
	GPUNVLinkErrors = define(Metric{
		Name:   "accel_gpu_nvlink_errors_total",
		Help:   "Errors that all NVLinks of a GPU together have counted since the exporter first saw it, by type. The counter of a link that begins anew, as after its reset, takes nothing away. The types overlap: read one, do not add them up.",
		Kind:   Counter,
		Labels: []string{"type"},
		Values: NVLinkErrors.Values,
		From:   []string{"exporter: increases of accel_nvlink_errors_total"},
	})
	GPUNVLinkTransmit = define(Metric{
		Name: "accel_gpu_nvlink_transmit_bytes_total",
		Help: "Payload bytes sent over all NVLinks of a GPU since the exporter first saw it.",
		Kind: Counter,
		From: []string{"exporter: increases of accel_nvlink_transmit_bytes_total"},
	})
	GPUNVLinkReceive = define(Metric{
		Name: "accel_gpu_nvlink_receive_bytes_total",
		Help: "Payload bytes received over all NVLinks of a GPU since the exporter first saw it.",
		Kind: Counter,
		From: []string{"exporter: increases of accel_nvlink_receive_bytes_total"},
	})
)
