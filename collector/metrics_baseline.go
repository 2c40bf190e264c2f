package collector

// Families of approved configurations.
var (
	Drift = define(Metric{
		Name:   "accel_drift",
		Help:   "1 if a component of a device differs from the approved values, else 0. Absent if the component is not compared, or unknown: the device does not answer, or the region is being configured.",
		Kind:   Gauge,
		Labels: []string{"component", "expected", "actual"},
		Range:  boolean,
		Values: []string{
			"component: driver, cuda, module (the bound kernel driver), mig, a component of accel_firmware_info, region/kind of accel_fpga_bitstream_info, root_key/ and a key of accel_fpga_root_key_info; held/afu, held/interface, held/shell and held/shell_timestamp for the design that is encoded in the resource name of the allocation",
			"expected: the approved values, separated by commas",
		},
		From: []string{"exporter: the baseline catalogue or the resource name, against accel_driver_info, accel_firmware_info, accel_mig_instances, accel_fpga_bitstream_info, accel_fpga_root_key_info"},
	})
	BaselineInfo = define(Metric{
		Name:   "accel_baseline_info",
		Help:   "Entry of the baseline catalogue that applies to a device; value 1. Absent for a device that no entry matches.",
		Kind:   Info,
		Labels: []string{"entry"},
		From:   []string{"exporter"},
	})
)
