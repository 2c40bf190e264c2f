package collector

// Families that sum, by device, families with many series per device: they make
// rules over many devices and long ranges cheap.
var (
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
