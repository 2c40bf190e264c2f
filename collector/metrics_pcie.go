package collector

import "math"

// Families of the PCI core: the state of a device as seen by the kernel's bus
// code, independent of its driver. A card may have several functions, so each
// family has a label with the address of the function.
var (
	PCIeFunctionInfo = define(Metric{
		Name:   "accel_pcie_function_info",
		Help:   "Identity of one PCI function of a device; value 1. port_address is the port above it, numa_node is empty where the firmware does not report it.",
		Kind:   Info,
		Labels: []string{"pci_address", "vendor_id", "device_id", "subsystem_vendor_id", "subsystem_device_id", "revision", "class_code", "numa_node", "port_address"},
		From:   []string{"sysfs bus/pci/devices/*/{vendor,device,subsystem_vendor,subsystem_device,revision,class,numa_node}"},
		Level:  onAttention,
	})
	PCIeDriverBound = define(Metric{
		Name:   "accel_pcie_function_driver_bound",
		Help:   "1 if a kernel driver is bound to the function, with its name, else 0. Present while the function is on the bus.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "driver"},
		Range:  boolean,
		From:   []string{"sysfs bus/pci/devices/*/driver"},
		Level:  onAttention,
	})
	PCIeResponding = define(Metric{
		Name:   "accel_pcie_function_responding",
		Help:   "1 if the function, or a port on the way to it, answers configuration reads; 0 if they return all ones, are refused because the device is gone, or do not return. Absent while the function is suspended, because the exporter does not wake it.",
		Kind:   Gauge,
		Labels: []string{"pci_address"},
		Range:  boolean,
		From:   []string{"sysfs bus/pci/devices/*/current_link_width (63 lanes and EINVAL are no answers)"},
		Level:  onAttention,
	})
	// Read by hand: why a function has no link.
	PCIeSuspended = define(Metric{
		Name:   "accel_pcie_function_suspended",
		Help:   "1 while runtime power management has suspended the function, else 0. Its link is then not read, because that would wake it.",
		Kind:   Gauge,
		Labels: []string{"pci_address"},
		Range:  boolean,
		From:   []string{"sysfs bus/pci/devices/*/power/runtime_status"},
		Level:  onAttention,
	})

	// Read by hand, with its maximum: which link of the way to the root is slow.
	PCIeLinkSpeed = define(Metric{
		Name:   "accel_pcie_bus_link_speed_transfers_per_second",
		Help:   "Current signalling rate per lane of a PCIe link, as reported by one of its ends. An idle device may lower it to save power.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1e9, 1e12},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/current_link_speed (GT/s)"},
		Level:  onAttention,
	})
	PCIeLinkSpeedMax = define(Metric{
		Name:   "accel_pcie_bus_link_speed_max_transfers_per_second",
		Help:   "Highest signalling rate per lane that one end of a PCIe link supports. The link supports the lower rate of its two ends.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1e9, 1e12},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/max_link_speed (GT/s)"},
		Level:  onAttention,
	})
	PCIeLinkWidth = define(Metric{
		Name:   "accel_pcie_bus_link_width_lanes",
		Help:   "Current number of lanes of a PCIe link, as reported by one of its ends. Absent where there is no link.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1, 32},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/current_link_width"},
		Level:  only("end", "device"),
	})
	PCIeLinkWidthMax = define(Metric{
		Name:   "accel_pcie_bus_link_width_max_lanes",
		Help:   "Lanes that one end of a PCIe link supports. The link supports the smaller number of its two ends and is degraded when it uses fewer. Absent where only one end is visible, as in a virtual machine.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1, 32},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/max_link_width"},
		Level:  onAttention,
	})

	// Read by hand (AcceleratorPcieErrors): the name says which part to replace.
	AERErrors = define(Metric{
		Name:   "accel_pcie_aer_errors_total",
		Help:   "PCIe errors that one end of a link has reported since it was enumerated, by name. A name appears with its first error; accel_pcie_aer_reports_total is 0 before. Nothing is counted where the firmware handles errors. Read every 5 s.",
		Kind:   Counter,
		Labels: []string{"pci_address", "link", "end", "severity", "error"},
		Range:  Range{0, math.MaxInt64},
		Values: []string{
			linkValues, endValues, severityValues,
			"error: receiver, bad_tlp, bad_dllp, replay_rollover, replay_timeout, advisory_nonfatal, corrected_internal, header_log_overflow where correctable; undefined, data_link_protocol, surprise_down, poisoned_tlp, flow_control_protocol, completion_timeout, completer_abort, unexpected_completion, receiver_overflow, malformed_tlp, ecrc, unsupported_request, acs_violation, uncorrectable_internal, mc_blocked_tlp, atomicop_blocked, tlp_prefix_blocked, poisoned_tlp_blocked, dmwr_blocked, ide_check, misrouted_ide_tlp, pcrc_check, tlp_translation_blocked where not; other for names that are not listed here",
		},
		From:  []string{"sysfs bus/pci/devices/*/aer_dev_{correctable,nonfatal,fatal}"},
		Level: onAttention,
	})
	AERReports = define(Metric{
		Name:   "accel_pcie_aer_reports_total",
		Help:   "Error reports of one end of a link since it was enumerated, by severity. One report may name several errors. Read every 5 s.",
		Kind:   Counter,
		Labels: []string{"pci_address", "link", "end", "severity"},
		Values: []string{linkValues, endValues, severityValues},
		From:   []string{"sysfs bus/pci/devices/*/aer_dev_{correctable,nonfatal,fatal} TOTAL_ERR_*"},
		Level:  only("severity", "correctable"),
	})

	DeviceFileUsable = define(Metric{
		Name:   "accel_device_file_usable",
		Help:   "1 if a device file that programs need exists and has the owner and mode that the driver is configured with, else 0 with the reason. The file is not opened.",
		Kind:   Gauge,
		Labels: []string{"file", "reason"},
		Range:  boolean,
		Values: []string{"file: nvidia0 and so on, nvidiactl, nvidia-uvm; of AMD GPUs dri/renderD128 and so on, kfd, whose owner and mode are not compared", "reason: empty when usable, else missing, wrong_device (no device file), permissions"},
		From:   []string{"procfs driver/nvidia/gpus/*/information, driver/nvidia/params, devices; sysfs drm/renderD*; stat of /dev"},
	})
)

const (
	linkValues     = "link: 0 (the link of the device), 1 (the link of the switch above it), and so on towards the root"
	endValues      = "end: device (the lower end), port (the upper end)"
	severityValues = "severity: correctable, nonfatal, fatal"
)
