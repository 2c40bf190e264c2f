package main

import "slices"

// device is one GPU, MIG instance or FPGA in detail. Values that a partition does
// not have (temperature, power, links, errors) are those of its board.
func device() board {
	return board{
		uid: "accel-device", title: "Accelerators / Device", from: "now-3h",
		about:     "One GPU, MIG instance or FPGA in detail. For a MIG instance, temperature, power, links and errors are those of its GPU.",
		variables: []variable{datasource, oneCluster, oneNode, instances, oneDevice, wholeDevice},
		events:    append([]event{alerts(onDevice, ""), xids(ofBox)}, holds(inBox)...),
		rows: []row{
			{title: "Current state", panels: deviceNow()},
			{title: "What is wrong, and which pods are affected?", panels: []panel{deviceReasons(), deviceHolders(), deviceHits(), whole(firingAlerts(firing(onDevice)))}},
			{title: "Health", panels: []panel{deviceTimeline(), deviceXids(), deviceEvents()}},
			{title: "Use and memory", panels: deviceUse()},
			{title: "Temperature and power", panels: deviceHeat()},
			{title: "PCIe and NVLink", panels: deviceLinks()},
			{title: "Memory errors and repairs", panels: deviceMemory()},
			{title: "FPGA: designs and errors", folded: true, panels: fpgaParts(inBox, "")},
			{title: "FPGA: work, memory and board", folded: true, panels: deviceFPGA()},
			{title: "DCGM and Grace CPU", folded: true, panels: deviceDCGM()},
			{title: "Identity and firmware", folded: true, panels: deviceIdentity()},
		},
	}
}

const (
	notMeasured = "Not measured on this device"
	onBoard     = " For a MIG instance this is the value of its GPU."
)

func deviceNow() []panel {
	return []panel{
		narrowTile(panel{
			kind: number, title: "Health", unit: "none", states: healthStates, scale: only(plain), empty: "The device does not answer",
			about:   "The verdict. Failed: work on it is lost. Degraded: work continues. Unknown: the device cannot be observed.",
			queries: []query{{expr: `max(` + healthOf(inBox) + `)`}},
		}),
		narrowTile(panel{
			kind: number, title: "What to do", unit: "none", words: true, scale: only(blue), empty: "The device does not answer",
			about:   "The recommended action." + onBoard,
			queries: []query{{`max by (action) (accel_device_action{` + ofBox + `} == 1)`, "{{action}}"}},
			links:   []jump{*toHealth("actions")},
		}),
		narrowTile(panel{
			kind: number, title: "Holders", unit: "none", scale: only(blue), empty: "Unknown, or divided into partitions",
			about:   "Pods that the device is allocated to. 0: it is free.",
			queries: []query{{expr: `max(accel_device_holders{` + inBox + `})`}},
		}),
		narrowTile(panel{
			kind: number, title: "Use", unit: "percentunit", scale: only(blue), empty: notMeasured, decimals: f(0),
			about:   "Share of time in which a kernel ran; of MIG instances, share of cycles in which their engine was active. No driver measures it on FPGAs.",
			queries: []query{{expr: `max(accel_utilization_ratio{engine="compute",` + inBox + `}) or max(accel_activity_ratio{unit="graphics",` + inBox + `})`}},
		}),
		narrowTile(panel{
			kind: number, title: "Memory in use", unit: "percentunit", scale: only(blue), empty: notMeasured, decimals: f(0),
			about:   "Share of the memory that is allocated. Frameworks allocate it in advance.",
			queries: []query{{expr: `max(accel_memory_used_bytes{` + inBox + `} / ` + perDevice + ` accel_memory_total_bytes{` + inBox + `})`}},
		}),
		narrowTile(panel{
			kind: number, title: "Margin", unit: "celsius", empty: notMeasured,
			about:   "Degrees left before the device slows down. Red where AcceleratorsHot fires." + onBoard,
			scale:   scale{red, []step{{nearLimitCelsius, green}}},
			queries: []query{{expr: `min(accel_temperature_margin_celsius{limit="slowdown",` + ofBox + `})`}},
		}),
		narrowTile(panel{
			kind: number, title: "Power", unit: "watt", scale: only(blue), empty: notMeasured,
			about:   "Power drawn now." + onBoard,
			queries: []query{{expr: `max(accel_power_watts{` + ofBox + `})`}},
		}),
		narrowTile(panel{
			kind: number, title: "Last answer", unit: "dateTimeFromNow", empty: "The device has never answered",
			about:   "Time of the last successful read of the device. If it is older than a minute, check the exporter.",
			scale:   only(blue),
			queries: []query{{expr: `1000 * max(accel_device_last_sample_timestamp_seconds{` + inBox + `})`}},
		}),
	}
}

func deviceReasons() panel {
	return quarter(panel{
		kind: listing, title: "Reasons", unit: "none", empty: "No reason against its health, or the device does not answer",
		about:   "The reasons for the health state of the device, each with the state that it causes. docs/health.md explains them.",
		queries: []query{{expr: `max by (severity, reason) (accel_device_health_reason{` + inBox + `} == 1)`}},
		columns: []column{{of: "severity", title: "Verdict", states: verdicts, width: 90, sort: true}, reasonColumn},
	})
}

func deviceHolders() panel {
	of := func(name string) query {
		return query{expr: keep(name+`{`+inBox+`}`, "namespace, pod, resource")}
	}
	return panel{
		width: 10, height: 8,
		kind: listing, title: "Pods", unit: "none", empty: "The device is free, or the kubelet does not answer",
		about:   "Pods that the device is allocated to, their use of it and how long it has been idle.",
		queries: []query{of("accel_allocation_info"), of("accel_allocation_utilization_ratio"), of("accel_allocation_memory_used_bytes"), of("accel_allocation_idle_seconds")},
		columns: []column{
			namespaceColumn, podColumn,
			{of: "resource", title: "Resource"},
			{of: "B", title: "Use", unit: "percentunit", width: 65},
			{of: "C", title: "Memory", unit: "bytes", width: 85},
			{of: "D", title: "Idle for", unit: "s", width: 80, sort: true},
		},
	}
}

func deviceHits() panel {
	return third(panel{
		kind: listing, title: "Affected pods", unit: "none", empty: "No fault has hit a pod in the last hour",
		about:   "Pods that the device was allocated to when it had a fault, including pods that have ended. They did not cause it.",
		queries: []query{{expr: keep(`1000 * accel_allocation_fault_timestamp_seconds{`+inBox+`}`, "namespace, pod, fault")}},
		columns: []column{namespaceColumn, podColumn, {of: "fault", title: "Fault"}, {of: "A", title: "When", unit: "dateTimeFromNow", sort: true, width: 110}},
	})
}

func deviceTimeline() panel {
	return third(panel{
		kind: timeline, title: "Health", unit: "none", states: append(slices.Clip(healthStates), state{"4", "yes", green}, state{"5", "no", red}), empty: "The device has not answered",
		about:   "The verdict over time, and whether the device answers.",
		queries: []query{{`max(` + healthOf(inBox) + `)`, "health"}, {`5 - max(accel_device_up{` + inBox + `})`, "answers"}},
	})
}

func deviceXids() panel {
	return third(panel{
		kind: bars, title: "Xids", unit: "none", stacked: true, min: f(0), empty: "No Xid is counted",
		about:   "Xids by number. Numbers 13, 31, 43 and 69 are usually application errors; the others are faults of the GPU or its driver." + onBoard,
		queries: []query{{`sum by (xid) (` + happened(`accel_gpu_xid_errors_total{`+ofBox+`}`) + `)`, "Xid {{xid}}"}},
	})
}

func deviceEvents() panel {
	return third(panel{
		kind: bars, title: "Events", unit: "none", stacked: true, min: f(0), empty: "No event is counted",
		about: "Events that driver and kernel reported, and changes of the verdict to failed." + onBoard,
		queries: []query{
			{`sum by (event) (` + happened(`accel_device_events_total{`+ofBox+`}`) + `)`, "{{event}}"},
			{`sum(` + grew(`accel_device_failures_total{`+ofBox+`}`) + ` > 0)`, "became failed"},
		},
	})
}

func deviceUse() []panel {
	return []panel{
		quarter(panel{
			kind: lines, title: "Engines", unit: "percentunit", min: f(0), max: f(1), empty: notMeasured,
			about:   "Share of time in which each engine had any work. compute: a kernel ran.",
			queries: []query{{`max by (engine) (accel_utilization_ratio{` + inBox + `})`, "{{engine}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Units", unit: "percentunit", min: f(0), max: f(1), empty: notMeasured,
			about:   "Share of cycles in which each unit was active, and how full the SMs were. High use with idle tensor cores and busy dram waits for memory.",
			queries: []query{{`max by (unit) (accel_activity_ratio{` + inBox + `})`, "{{unit}}"}, {`max(accel_sm_occupancy_ratio{` + inBox + `})`, "occupancy"}},
		}),
		quarter(panel{
			kind: lines, title: "Memory", unit: "bytes", min: f(0), dashed: "^total$", empty: notMeasured,
			about:   "Memory allocated, reserved by the driver, and installed. Programs fail when they need more." + needsDetail("reserved"),
			queries: []query{{`max(accel_memory_used_bytes{` + inBox + `})`, "used"}, {`max(accel_memory_reserved_bytes{` + inBox + `})`, "reserved"}, {`max(accel_memory_total_bytes{` + inBox + `})`, "total"}},
		}),
		quarter(panel{
			kind: lines, title: "Memory by pod", unit: "bytes", min: f(0), stacked: true, empty: "The device is free, or its memory cannot be attributed to pods",
			about:   "Memory that each pod has allocated on the device.",
			queries: []query{{`max by (namespace, pod) (accel_allocation_memory_used_bytes{` + inBox + `})`, "{{namespace}}/{{pod}}"}},
		}),
	}
}

func deviceHeat() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Temperatures and limits", unit: "celsius", dashed: "limit", empty: notMeasured,
			about:   "Temperature by sensor; dashed, the limits at which the device slows down or switches off." + onBoard,
			queries: []query{{`max by (sensor) (accel_temperature_celsius{` + ofBox + `})`, "{{sensor}}"}, {`max by (sensor, limit) (accel_temperature_limit_celsius{` + ofBox + `})`, "limit {{sensor}} {{limit}}"}},
		}),
		third(panel{
			kind: lines, title: "Margins", unit: "celsius", limitLine: true, empty: notMeasured,
			about:   "Degrees left before each action of the device. AcceleratorsHot fires where slowdown is below the line." + onBoard,
			scale:   scale{red, []step{{nearLimitCelsius, green}}},
			queries: []query{{`max by (limit) (accel_temperature_margin_celsius{` + ofBox + `})`, "to {{limit}}"}},
		}),
		third(panel{
			kind: lines, title: "Power and limits", unit: "watt", min: f(0), dashed: "limit", empty: notMeasured,
			about: "Power drawn; dashed, the limits. At enforced the GPU lowers its clocks, which is normal in training." + onBoard + needsDetail("the average"),
			queries: []query{
				{`max(accel_power_watts{` + ofBox + `})`, "now"},
				{`max(accel_power_average_watts{` + ofBox + `})`, "average of 1 s"},
				{`max by (limit) (accel_power_limit_watts{limit=~"enforced|default|slowdown|shutdown",` + ofBox + `} or accel_fpga_power_threshold_watts{` + ofBox + `})`, "limit {{limit}}"},
			},
		}),
		third(panel{
			kind: lines, title: "Throttled", unit: "percentunit", min: f(0), max: f(1), limitLine: true, empty: notMeasured,
			about:   "Share of time in which the clocks were reduced, by reason. sw_power_cap is normal under load; the others are not. AcceleratorsHot fires where heat is above the line." + onBoard,
			scale:   bad(hotThrottleShare),
			queries: []query{{`clamp_max(sum by (reason) (rate(accel_throttle_seconds_total{reason!~"below_.*",` + ofBox + `}[$__rate_interval])), 1)`, "{{reason}}"}},
		}),
		third(panel{
			kind: lines, title: "Clocks", unit: "hertz", min: f(0), dashed: "limit", empty: notMeasured,
			about:   "Clock frequencies; dashed, the highest the device can do. If low under load, check the reasons for throttling." + onBoard,
			queries: []query{{`max by (clock) (accel_clock_hertz{` + ofBox + `})`, "{{clock}}"}, {`max by (clock) (accel_clock_max_hertz{clock=~"sm|memory",` + ofBox + `})`, "limit {{clock}}"}},
		}),
		third(panel{
			kind: bars, title: "Energy", unit: "joule", min: f(0), empty: notMeasured,
			about:   "Energy used in each step. Bars that fall to nothing are an idle device." + onBoard,
			queries: []query{{`sum(` + grew(`accel_energy_joules_total{`+ofBox+`}`) + `)`, "energy"}},
		}),
	}
}

func deviceLinks() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "PCIe traffic", unit: "Bps", min: f(0), empty: notMeasured,
			about:   "Bytes over PCIe. If far below the capacity of the link while the device waits, check the host.",
			queries: []query{{`max(rate(accel_pcie_receive_bytes_total{` + inBox + `}[$__rate_interval]))`, "received"}, {`max(rate(accel_pcie_transmit_bytes_total{` + inBox + `}[$__rate_interval]))`, "sent"}},
		}),
		third(panel{
			kind: lines, title: "PCIe link", unit: "none", min: f(0), dashed: "possible", empty: notMeasured,
			about: "Lanes and generation, and what is possible in this slot. Fewer lanes are a fault; a lower generation is normal while idle." + onBoard + needsDetail("a healthy FPGA card"),
			queries: []query{
				{`max(accel_pcie_link_width_lanes{` + ofBox + `}) or min(accel_pcie_bus_link_width_lanes{link="0",` + ofBox + `})`, "lanes"},
				{`max(accel_pcie_link_width_max_lanes{` + ofBox + `}) or min(accel_pcie_bus_link_width_max_lanes{link="0",` + ofBox + `})`, "lanes possible"},
				{`max(accel_pcie_link_generation{` + ofBox + `})`, "generation"},
				{`max(accel_pcie_link_generation_max{of="slot",` + ofBox + `})`, "generation possible"},
			},
		}),
		third(panel{
			kind: bars, title: "PCIe errors", unit: "none", stacked: true, min: f(0), empty: "No PCIe error is counted",
			about:   "Reports of both ends of each link by severity, and transactions that were repeated. Nonfatal and fatal ones are always bad." + onBoard,
			queries: []query{{`sum by (severity) (` + grew(`accel_pcie_aer_reports_total{`+ofBox+`}`) + ` > 0)`, "{{severity}}"}, {`sum(` + grew(`accel_pcie_replays_total{`+ofBox+`}`) + ` > 0)`, "replays"}},
		}),
		third(panel{
			kind: lines, title: "NVLink traffic", unit: "Bps", min: f(0), empty: notMeasured,
			about:   "Bytes over all NVLinks." + onBoard,
			queries: []query{{`max(accel_nvlink_receive_bytes_per_second{` + ofBox + `})`, "received"}, {`max(accel_nvlink_transmit_bytes_per_second{` + ofBox + `})`, "sent"}},
		}),
		third(panel{
			kind: timeline, title: "NVLinks", unit: "none", empty: "No NVLink", states: upStates,
			about:   "Whether each link is up. A link that is down slows every multi-GPU job." + onBoard + needsDetail("a healthy device"),
			queries: []query{{`max by (link) (accel_nvlink_up{` + ofBox + `})`, "{{link}}"}},
		}),
		third(panel{
			kind: bars, title: "NVLink errors", unit: "none", stacked: true, min: f(0), empty: "No NVLink error is counted",
			about:   "Errors by type over all links. The types overlap. A recovery costs time; a failed recovery costs the link." + onBoard,
			queries: []query{{`sum by (type) (` + grew(`accel_gpu_nvlink_errors_total{`+ofBox+`}`) + ` > 0)`, "{{type}}"}},
		}),
	}
}

func deviceMemory() []panel {
	return []panel{
		third(panel{
			kind: bars, title: "ECC errors", unit: "none", stacked: true, min: f(0), empty: "No ECC error is counted",
			about:   "Errors since the driver was loaded, by severity and place. Uncorrected ones lose work." + onBoard,
			queries: []query{{`sum by (severity, location) (` + grew(`accel_ecc_errors_total{`+ofBox+`}`) + ` > 0)`, "{{severity}} {{location}}"}},
		}),
		third(panel{
			kind: lines, title: "Errors over the board's life", unit: "none", min: f(0), empty: notMeasured,
			about: "Uncorrected errors, rows remapped and pages retired, stored on the board. Watch for a rising line." + onBoard + needsDetail("the uncorrected errors of a healthy board"),
			queries: []query{
				{`sum by (severity) (accel_ecc_aggregate_errors_total{severity="uncorrected",` + ofBox + `})`, "{{severity}}"},
				{`sum by (cause) (accel_row_remaps_total{` + ofBox + `})`, "rows remapped: {{cause}}"},
				{`sum by (cause) (accel_retired_pages_total{` + ofBox + `})`, "pages retired: {{cause}}"},
			},
		}),
		third(panel{
			kind: timeline, title: "Repairs", unit: "none", states: yesBad, empty: notMeasured,
			about: "Remaps that are pending until a reset, remaps that failed, and SRAM errors above the threshold at which the board should be replaced." + onBoard + needsDetail("repairs of channels and TPCs of a healthy GPU"),
			queries: []query{
				{`max(accel_row_remap_pending{` + ofBox + `})`, "remap waits for a reset"},
				{`max(accel_row_remap_failed{` + ofBox + `})`, "remap failed"},
				{`max(accel_ecc_sram_threshold_exceeded{` + ofBox + `})`, "SRAM past its limit"},
				{`max by (kind) (accel_gpu_repair_pending{` + ofBox + `})`, "{{kind}} repair waits"},
			},
		}),
	}
}

// fpgaParts has the parts of the FPGAs of a selection; the prefix names the card in
// legends.
func fpgaParts(in, prefix string) []panel {
	by := func(part string) string { return ` by (device, ` + part + `) ` }
	card := column{of: "device", title: "Card"}
	columns := func(of ...column) []column {
		if prefix == "" {
			return of
		}
		return append([]column{card}, of...)
	}
	return []panel{
		half(panel{
			kind: listing, title: "Loaded designs", unit: "none", empty: "No FPGA, or nothing is loaded",
			about:   "Designs by region. The FPGA dashboard has more.",
			queries: []query{{expr: `max by (device, region, kind, id) (accel_fpga_bitstream_info{` + in + `})`}},
			columns: columns(column{of: "region", title: "Region"}, column{of: "kind", title: "Kind"}, column{of: "id", title: "Bitstream"}),
			links:   []jump{*jumpTo("accel-fpga", "FPGAs")},
		}),
		half(panel{
			kind: bars, title: "Reconfigurations and errors", unit: "none", stacked: true, min: f(0), empty: "No FPGA, or nothing happened",
			about:   "Loads of a design by region and outcome, and new error bits by unit. A failed load leaves the region unusable.",
			queries: []query{{`sum` + by("region, outcome") + `(` + grew(`accel_fpga_reconfigurations_total{`+in+`}`) + ` > 0)`, prefix + "{{region}} {{outcome}}"}, {`sum` + by("unit") + `(` + grew(`accel_fpga_errors_total{`+in+`}`) + ` > 0)`, prefix + "error in {{unit}}"}},
		}),
		third(panel{
			kind: timeline, title: "Regions", unit: "none", empty: "No FPGA, or it does not report whether a region is loaded", states: []state{{"1", "loaded", green}, {"0", "empty", orange}},
			about:   "Whether each region has a usable design. Short gaps are reconfigurations.",
			queries: []query{{`max` + by("region") + `(accel_fpga_bitstream_loaded{` + in + `})`, prefix + "{{region}}"}},
		}),
		third(panel{
			kind: timeline, title: "Firewalls and memory", unit: "none", states: []state{{"0", "in order", green}, {"1", "faulty", red}}, empty: "No FPGA, or it has neither",
			about:   "A tripped firewall isolates the design until the card is reset. Memory that is not calibrated cannot be used, which is normal only while the card is configured.",
			queries: []query{{`max` + by("firewall") + `(accel_fpga_firewall_tripped{` + in + `})`, prefix + "firewall {{firewall}}"}, {`1 - min` + by("bank") + `(accel_fpga_memory_calibrated{` + in + `})`, prefix + "memory {{bank}}"}},
		}),
		third(panel{
			kind: listing, title: "Latched errors", unit: "none", empty: "No FPGA, or no bit is set in an error register",
			about:   "Bits that are set now. They stay set until they are cleared; unit and name are those of the driver.",
			queries: []query{{expr: `max` + by("unit, error") + `(accel_fpga_error_latched{` + in + `} == 1)`}},
			columns: columns(column{of: "unit", title: "Unit"}, column{of: "error", title: "Error"}),
		}),
	}
}

func deviceFPGA() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Runs of compute units", unit: "ops", min: f(0), empty: "Not an FPGA, or it does not count runs",
			about:   "Runs of each compute unit per second, the closest value to a utilization.",
			queries: []query{{`max by (unit) (rate(accel_fpga_executions_total{` + inBox + `}[$__rate_interval]))`, "{{unit}}"}},
		}),
		third(panel{
			kind: lines, title: "Commands that wait", unit: "none", min: f(0), empty: "Not an FPGA, or it has no queues",
			about:   "Commands that wait for a compute unit or for the scheduler. A queue that only grows means that a unit hangs.",
			queries: []query{{`sum by (unit) (accel_fpga_queue_length{queue=~"pending|running",` + inBox + `})`, "{{unit}}"}},
		}),
		third(panel{
			kind: listing, title: "Compute units", unit: "none", empty: "Not an FPGA, or it has no compute units",
			about:   "State of each compute unit. crashed: programs that wait for it never continue.",
			queries: []query{{expr: `max by (unit, state) (accel_fpga_compute_unit_state{` + inBox + `} == 1)`}},
			columns: []column{{of: "unit", title: "Unit"}, {of: "state", title: "State", states: unitStates}},
		}),
		third(panel{
			kind: lines, title: "Memory banks in use", unit: "bytes", min: f(0), empty: "Not an FPGA, or it does not report its memory",
			about:   "Memory of each bank that programs have allocated through the driver.",
			queries: []query{{`max by (bank) (accel_fpga_memory_bank_used_bytes{` + inBox + `})`, "{{bank}}"}},
		}),
		third(panel{
			kind: lines, title: "Voltages: distance from their mean", unit: "percentunit", empty: "Not an FPGA, or it measures no voltages",
			about:   "Deviation of each voltage from its mean of the last hour. A deviation of more than five percent points to a failing power supply or board." + needsDetail("a healthy card"),
			queries: []query{{`max by (sensor) (accel_fpga_voltage_volts{` + inBox + `} / avg_over_time(accel_fpga_voltage_volts{` + inBox + `}[1h]) - 1)`, "{{sensor}}"}},
		}),
		third(panel{
			kind: lines, title: "Fans", unit: "rotrpm", min: f(0), empty: "Not an FPGA, or a card without a fan",
			about:   "Speed of each fan. A fan that does not turn while the card is hot is broken.",
			queries: []query{{`max by (fan) (accel_fan_speed_rpm{` + inBox + `})`, "{{fan}}"}},
		}),
	}
}

func deviceIdentity() []panel {
	return []panel{
		half(panel{
			kind: listing, title: "Identity", unit: "none", empty: "The device is not known",
			about:   "What the device is and where it is installed.",
			queries: []query{{expr: `max by (class, vendor, model, architecture, profile, index, pci_address, numa_node, serial) (accel_device_info{` + inBox + `})`}},
			columns: []column{
				{of: "class", title: "Class"},
				{of: "model", title: "Model"},
				{of: "architecture", title: "Architecture"},
				{of: "profile", title: "Profile"},
				{of: "index", title: "Index"},
				{of: "pci_address", title: "PCI address"},
				{of: "numa_node", title: "NUMA node"},
				{of: "serial", title: "Serial"},
				{of: "vendor", title: "Vendor"},
			},
		}),
		half(panel{
			kind: listing, title: "Firmware, and drift from the baseline", unit: "none", empty: "Not known, and nothing differs",
			about:   "Versions of firmware, and differences from the baseline: approved and actual values.",
			queries: []query{{expr: `max by (component, version) (accel_firmware_info{` + ofBox + `}) or max by (component, expected, actual) (accel_drift{` + ofBox + `} == 1)`}},
			columns: []column{{of: "component", title: "Component"}, {of: "version", title: "Version"}, {of: "actual", title: "Differs: is"}, {of: "expected", title: "Differs: approved"}},
		}),
	}
}

// grew is by how much a counter grew since the step before. Unlike an increase over
// $__rate_interval, which spans several steps, it counts each event once. A counter
// that was reset has grown from 0, and one that was not there before from its first
// value.
func grew(counter string) string {
	before := counter + " offset $__interval"
	return "(" + counter + " - (" + before + " <= " + counter + " or 0 * (" + counter + " and " + before + ") or min_over_time(" + counter + "[$__interval])))"
}

// happened is the growth of a counter that is not served while it is 0: a series that
// was not there before has grown from 0.
func happened(counter string) string {
	return counter + " - (" + counter + " offset $__interval <= " + counter + " or 0 * " + counter + ") > 0"
}

// needsDetail is a sentence about what a panel shows only of a device that needs
// attention, unless the exporter serves everything.
func needsDetail(what string) string {
	return " For " + what + ", start the exporter with `--metrics.detail=full`."
}
