package collector

// Families that sum, by device, families with many series per device: they make
// rules over many devices and long ranges cheap.
var (
	XidEvents = define(Metric{
		Name:   "accel_gpu_xid_events_total",
		Help:   "Xid events of a GPU since the exporter started, by kind: accel_gpu_xid_errors_total summed by the kind of each number in the catalogue.",
		Kind:   Counter,
		Labels: []string{"kind"},
		Values: []string{"kind: hardware (the GPU, its firmware or its links), application (an error of a program), other (consequences of those, details of another Xid, ambiguous numbers, and numbers that the catalogue does not list)"},
		From:   []string{"exporter, by the catalogue of internal/judge/health"},
	})
	XidIncidents = define(Metric{
		Name: "accel_gpu_xid_incidents_total",
		Help: "Incidents of a GPU since the exporter started: Xids that make it failed, by the catalogue and the sub-code, with less than ten minutes between them count once.",
		Kind: Counter,
		From: []string{"exporter, by the catalogue of internal/judge/health"},
	})
	GPUNVLinkErrors = define(Metric{
		Name:   "accel_gpu_nvlink_errors_total",
		Help:   "Errors of all NVLinks of a GPU since the exporter first saw it, by type. The reset of a link counter does not decrease the sum. The types overlap: read one, do not add them up.",
		Kind:   Counter,
		Labels: []string{"type"},
		Values: NVLinkErrors.Values,
		From:   []string{"exporter: increases of accel_nvlink_errors_total"},
	})
	// No rule or board reads it; it is queried for the traffic of a board where the links are not on the page.
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
