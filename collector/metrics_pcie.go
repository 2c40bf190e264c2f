package collector

import "math"

// Families of the PCI core: what the kernel's bus code says of a device,
// whatever its driver says. A card may have several functions, so each family
// carries the address of the function it is about.
var (
	PCIeFunctionInfo = define(Metric{
		Name:   "accel_pcie_function_info",
		Help:   "Identity of one PCI function of a device as the bus has it; value 1. port_address is the port above it, numa_node is empty where the firmware does not say.",
		Kind:   Info,
		Labels: []string{"pci_address", "vendor_id", "device_id", "subsystem_vendor_id", "subsystem_device_id", "revision", "class_code", "numa_node", "port_address"},
		From:   []string{"sysfs bus/pci/devices/*/{vendor,device,subsystem_vendor,subsystem_device,revision,class,numa_node}"},
	})
	PCIeDriverBound = define(Metric{
		Name:   "accel_pcie_function_driver_bound",
		Help:   "1 if a kernel driver is bound to the function, with its name, else 0. There as long as the function is on the bus.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "driver"},
		Range:  boolean,
		From:   []string{"sysfs bus/pci/devices/*/driver"},
	})
	PCIeResponding = define(Metric{
		Name:   "accel_pcie_function_responding",
		Help:   "1 if the function, or a port on the way to it, answers configuration reads; 0 if they read all ones, are refused as to a device that is gone, or do not return. Absent while it sleeps: it is not woken to ask.",
		Kind:   Gauge,
		Labels: []string{"pci_address"},
		Range:  boolean,
		From:   []string{"sysfs bus/pci/devices/*/current_link_width (63 lanes and EINVAL are no answers)"},
	})
	PCIePowerState = define(Metric{
		Name:   "accel_pcie_function_power_state",
		Help:   "PCI power state of the function as the kernel keeps it: 1 for the state it is in, 0 for the others.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "state"},
		Range:  boolean,
		Values: []string{"state: d0 (awake), d1, d2, d3hot, d3cold (no power), unknown (as without a driver), error"},
		From:   []string{"sysfs bus/pci/devices/*/power_state"},
	})
	PCIeSuspended = define(Metric{
		Name:   "accel_pcie_function_suspended",
		Help:   "1 while runtime power management has the function asleep, else 0. Its link is then not read, since that would wake it.",
		Kind:   Gauge,
		Labels: []string{"pci_address"},
		Range:  boolean,
		From:   []string{"sysfs bus/pci/devices/*/power/runtime_status"},
	})

	PCIeLinkSpeed = define(Metric{
		Name:   "accel_pcie_bus_link_speed_transfers_per_second",
		Help:   "Signalling rate per lane of a PCIe link now, as one of its ends has it. An idle device may lower it to save power.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1e9, 1e12},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/current_link_speed (GT/s)"},
	})
	PCIeLinkSpeedMax = define(Metric{
		Name:   "accel_pcie_bus_link_speed_max_transfers_per_second",
		Help:   "Highest signalling rate per lane that one end of a PCIe link can do. The link can do the lower one of its two ends.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1e9, 1e12},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/max_link_speed (GT/s)"},
	})
	PCIeLinkWidth = define(Metric{
		Name:   "accel_pcie_bus_link_width_lanes",
		Help:   "Lanes of a PCIe link now, as one of its ends has it. Absent where there is no link.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1, 32},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/current_link_width"},
	})
	PCIeLinkWidthMax = define(Metric{
		Name:   "accel_pcie_bus_link_width_max_lanes",
		Help:   "Lanes that one end of a PCIe link has. The link can do the fewer of its two ends: it is degraded when it has less than that.",
		Kind:   Gauge,
		Labels: []string{"pci_address", "link", "end"},
		Range:  Range{1, 32},
		Values: []string{linkValues, endValues},
		From:   []string{"sysfs bus/pci/devices/*/max_link_width"},
	})

	AERErrors = define(Metric{
		Name:   "accel_pcie_aer_errors_total",
		Help:   "PCIe errors by name that one end of a link reported since it was enumerated. A name appears when it has happened; accel_pcie_aer_reports_total stands at 0 before. Nothing is counted where the firmware handles errors itself.",
		Kind:   Counter,
		Labels: []string{"pci_address", "link", "end", "severity", "error"},
		Range:  Range{0, math.MaxInt64},
		Values: []string{
			linkValues, endValues, severityValues,
			"error: receiver, bad_tlp, bad_dllp, replay_rollover, replay_timeout, advisory_nonfatal, corrected_internal, header_log_overflow where correctable; undefined, data_link_protocol, surprise_down, poisoned_tlp, flow_control_protocol, completion_timeout, completer_abort, unexpected_completion, receiver_overflow, malformed_tlp, ecrc, unsupported_request, acs_violation, uncorrectable_internal, mc_blocked_tlp, atomicop_blocked, tlp_prefix_blocked, poisoned_tlp_blocked, dmwr_blocked, ide_check, misrouted_ide_tlp, pcrc_check, tlp_translation_blocked where not; other for what the kernel names otherwise",
		},
		From: []string{"sysfs bus/pci/devices/*/aer_dev_{correctable,nonfatal,fatal}"},
	})
	AERReports = define(Metric{
		Name:   "accel_pcie_aer_reports_total",
		Help:   "Error reports of one end of a link since it was enumerated, by severity. One report may name several errors.",
		Kind:   Counter,
		Labels: []string{"pci_address", "link", "end", "severity"},
		Values: []string{linkValues, endValues, severityValues},
		From:   []string{"sysfs bus/pci/devices/*/aer_dev_{correctable,nonfatal,fatal} TOTAL_ERR_*"},
	})

	AERRootMessages = define(Metric{
		Name:   "accel_pcie_root_port_messages_total",
		Help:   "Error messages that arrived at the root port above the device since it was enumerated, from everything below it. Where a device is gone before it can be asked for the name of its error, they are all that is left of it.",
		Kind:   Counter,
		Labels: []string{"pci_address", "severity"},
		Values: []string{severityValues},
		From:   []string{"sysfs bus/pci/devices/*/aer_rootport_total_err_{cor,nonfatal,fatal}"},
	})

	DeviceFileUsable = define(Metric{
		Name:   "accel_device_file_usable",
		Help:   "1 if a device file that programs need for the device is there, is that device's and has the owner and mode that the driver was told to give it, else 0 with the reason. Nothing is opened.",
		Kind:   Gauge,
		Labels: []string{"file", "reason"},
		Range:  boolean,
		Values: []string{"file: nvidia0 and so on, nvidiactl, nvidia-uvm", "reason: empty when usable, else missing, wrong_device (another number or no device file), permissions"},
		From:   []string{"procfs driver/nvidia/gpus/*/information, driver/nvidia/params, devices; stat of /dev"},
	})
)

const (
	linkValues     = "link: 0 (the one the device sits on), 1 (that of the switch above it), and so on towards the root"
	endValues      = "end: device (the lower end), port (the upper end)"
	severityValues = "severity: correctable, nonfatal, fatal"
)
