package main

// node shows every device of one node, or one of them: state, pods, use, heat, links and
// errors. A MIG instance has the temperature, power, links and errors of its GPU.
func node() board {
	return board{
		uid: "accel-node", title: "Accelerators / Node and device", from: "now-3h",
		about:     "The devices of one node, or one device, GPU or MIG instance: health, pods, use, heat, links and errors. A MIG instance has the temperature, power, links and errors of its GPU.",
		variables: []variable{datasource, oneCluster, oneNode, instances, jobs, devices, boardsOf},
		events:    append([]event{alerts(onNode, ""), xids(ofBox)}, holds(inBox)...),
		rows: []row{
			{title: "Is something wrong?", panels: nodeNow()},
			{title: "Devices: choose one above, or click on its name", panels: []panel{
				nodeDevices(), whole(incidentsOf(ofBox)), whole(firingAlerts(firing(onNode))), whole(nodeTimeline()),
			}},
			{title: "Pods", panels: nodePods()},
			{title: "Use and memory", panels: nodeUse()},
			{title: "Temperature and power", panels: nodeHeat()},
			{title: "Errors", panels: nodeErrors()},
			{title: "PCIe and NVLink", folded: true, panels: nodeLinks()},
			{title: "Identity and firmware", folded: true, panels: nodeIdentity()},
		},
	}
}

const (
	wholes    = `parent="",` + inNode
	ofWholes  = `parent="",` + ofBox
	noDevices = "The node has no such device, or its exporter is down"
	noSuch    = "Not measured: no device of this kind, or it does not answer"
	onBoard   = " A MIG instance has the values of its GPU."
)

func nodeNow() []panel {
	return tiles(
		panel{
			title: "Exporter", states: upStates, empty: "Not scraped",
			about:   "Whether the node's exporter could be scraped. While it is down all values here are old.",
			queries: []query{{expr: `max(up{job=~"$job",` + inNode + `})`}},
		},
		panel{
			title: "Failed devices", scale: bad(1), empty: "No device answers",
			about:   "Whole devices of the node whose verdict is failed or unknown.",
			queries: count(verdict(wholes, "failed|unknown"), `accel_device_health{`+wholes+`}`),
		},
		panel{
			title: "Degraded devices", scale: upFrom(1, orange), empty: "No device answers",
			about:   "Whole devices on which work continues although they need attention.",
			queries: count(verdict(wholes, "degraded"), `accel_device_health{`+wholes+`}`),
		},
		panel{
			title: "Critical alerts", scale: bad(1), empty: noAlertRules,
			about:   "Alerts on this node, or on the chosen device, with severity critical. Listed below." + firesOn,
			queries: count(firing(`severity="critical",`+onNode), rulesLoaded),
		},
		panel{
			title: "Other alerts", scale: upFrom(1, orange), empty: noAlertRules,
			about:   "Alerts on this node, or on the chosen device, of any other severity. Listed below.",
			queries: count(firing(`severity!="critical",`+onNode), rulesLoaded),
		},
		panel{
			title: "Pods", scale: only(blue), empty: noAllocations,
			about:   "Pods of this node with a device or a partition. Listed below.",
			queries: count(`group by (namespace, pod) (accel_allocation_info{`+inNode+`})`, `accel_device_holders{`+inNode+`}`),
		},
		panel{
			title: "FPGAs", scale: only(blue), empty: "None, or no answer",
			about:   "FPGAs of the node, which have a dashboard of their kind. A click opens it.",
			queries: []query{{expr: `count(accel_device_info{class="fpga",` + inNode + `})`}},
			link:    jumpTo("accel-fpga", "FPGAs of this node", "node", "$node"),
		},
		panel{
			title: "Driver", scale: only(blue), words: true, empty: "No version known",
			about:   "Versions of the drivers of this node.",
			queries: []query{{`max by (vendor, version) (accel_driver_info{version!="",` + inNode + `})`, "{{version}}"}},
			link:    jumpTo("accel-exporter", "Rollout"),
		},
	)
}

// use is the share of time in which a device was busy, by its kernels, or its engines
// where the driver does not report that of a partition.
const use = `accel_utilization_ratio{engine="compute",` + inBox + `} or on (` + target + `, device) accel_activity_ratio{unit="graphics",` + inBox + `}`

func share(in string) string {
	return `accel_memory_used_bytes{` + in + `} / ` + perDevice + ` accel_memory_total_bytes{` + in + `}`
}

// nodeDevices is one row for each device, also for partitions, the sickest first.
func nodeDevices() panel {
	of := func(expr string) query {
		return onDevices(inBox, `max by (`+target+`, device) (`+expr+`)`, "", "model", "profile")
	}
	return panel{
		kind: listing, title: "Devices", width: 24, height: 11, empty: noDevices,
		about: "Current state of every device and MIG instance, the sickest first. An empty cell means not measured, not 0: partitions have no power or temperature, a lost device has neither. Red margins are where AcceleratorsHot fires.",
		queries: []query{
			of(healthOf(inBox)),
			of(`accel_device_holders{` + inBox + `}`),
			of(use),
			of(share(inBox)),
			of(`accel_power_watts{` + inBox + `}`),
			of(`accel_temperature_celsius{` + inBox + `}`),
			of(`min by (` + target + `, device) (accel_temperature_margin_celsius{limit="slowdown",` + inBox + `})`),
			of(`sum by (` + target + `, device) (rate(accel_throttle_seconds_total{reason=~"` + harmful + `",` + inBox + `}[$__rate_interval]))`),
		},
		columns: []column{
			nameColumn.wide(110),
			{of: "A", title: "Health", states: healthStates, width: 90, sort: true},
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 80},
			{of: "B", title: "Pods", width: 60},
			{of: "C", title: "Use", unit: "percentunit", width: 100, gauge: true},
			{of: "D", title: "Memory", unit: "percentunit", width: 100, gauge: true},
			{of: "E", title: "Power", unit: "watt", width: 80},
			{of: "F", title: "Hottest", unit: "celsius", width: 75},
			{of: "G", title: "Margin", unit: "celsius", width: 75, scale: &scale{red, []step{{nearLimitCelsius, none}}}},
			{of: "H", title: "Throttled", unit: "percentunit", width: 85, scale: &scale{none, []step{{hotThrottleShare, orange}}}},
		},
	}
}

func nodeTimeline() panel {
	return panel{
		kind: timeline, title: "Health", states: healthStates, empty: noDevices,
		about:   "The verdict on each whole device. Failed means that work on it is lost, degraded that it continues, unknown that the device cannot be observed.",
		queries: []query{{`max by (name, to, board) (label_replace(` + named(ofWholes, healthOf(ofWholes)) + `, "to", "$1", "device", "(.+)"))`, "{{name}}"}},
		link:    jumpTo("${__field.labels.board}", "This device", "node", "$node", "device", "${__field.labels.to}"),
	}
}

func nodePods() []panel {
	of := func(expr string) query {
		return onDevices(inBox, "max by ("+target+", device, namespace, pod, resource) ("+expr+")", "namespace, pod, resource")
	}
	return []panel{
		{
			kind: listing, title: "Which pod has which device", width: 24, height: 8, empty: "No device is allocated, or the kubelet does not answer",
			about:   "Under which resource, and whether it is used; the longest idle first. Power and memory of a shared device may not be known by pod.",
			queries: []query{of(`accel_allocation_info{` + inBox + `}`), of(`accel_allocation_utilization_ratio{` + inBox + `}`), of(`accel_allocation_memory_used_bytes{` + inBox + `}`), of(`accel_allocation_idle_seconds{` + inBox + `}`)},
			columns: []column{
				namespaceColumn, podColumn, nameColumn,
				{of: "resource", title: "Resource"},
				{of: "B", title: "Use", unit: "percentunit", width: 70},
				{of: "C", title: "Memory", unit: "bytes", width: 90},
				{of: "D", title: "Idle for", unit: "s", width: 90, sort: true, scale: &scale{none, []step{{idleAfter, yellow}}}},
				{of: "host", title: "Node", hidden: true},
			},
		},
		{
			kind: listing, title: "Use without an allocation", width: 24, height: 5, empty: "No such process, or processes cannot be listed",
			about:   "Processes that use a device which is not allocated to their pod. hidden: the process is not visible, which is not a violation.",
			queries: []query{onDevices(inBox, `max by (`+target+`, device, reason) (accel_unattributed_processes{`+inBox+`} > 0)`, "reason")},
			columns: []column{nameColumn, {of: "reason", title: "Kind"}, {of: "A", title: "Processes", width: 85, sort: true}, {of: "host", title: "Node", hidden: true}},
		},
	}
}

func nodeUse() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Use", unit: "percentunit", min: f(0), max: f(1), empty: noSuch,
			about:   "Share of time in which a kernel ran. It does not show how much of the device the kernel used; see the units of it.",
			queries: []query{perName(inBox, use)},
		}),
		third(panel{
			kind: lines, title: "Memory in use", unit: "percentunit", min: f(0), max: f(1), empty: noSuch,
			about:   "Share of the device's memory that is allocated. Frameworks allocate it in advance, so full is not bad by itself.",
			queries: []query{perName(inBox, share(inBox))},
		}),
		third(panel{
			kind: lines, title: "Units of the device", unit: "percentunit", min: f(0), max: f(1), empty: "Not measured: an FPGA, or a GPU without these counters",
			about:   "Share of cycles in which each kind of unit was active. If tensor is low while use is high, the device waits for memory or for the host.",
			queries: []query{{`max by (name, unit) (` + named(inBox, `accel_activity_ratio{unit=~"sm|tensor|dram",`+inBox+`}`) + `)`, "{{name}} {{unit}}"}},
		}),
	}
}

// harmful are the reasons of throttling that are faults.
const harmful = "hw_thermal|thermal|sw_thermal|hw_power_brake"

func nodeHeat() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Temperatures", unit: "celsius", dashed: "limit", empty: noSuch,
			about: "The hottest sensor of each device; dashed, the lowest limit at which one slows down." + onBoard,
			queries: []query{
				perName(ofWholes, `max by (`+target+`, device) (accel_temperature_celsius{`+ofWholes+`})`),
				{`min by (limit) (accel_temperature_limit_celsius{limit="slowdown",` + ofWholes + `})`, "limit: {{limit}}"},
			},
		}),
		third(panel{
			kind: lines, title: "Margin to slowdown", unit: "celsius", limitLine: true, empty: noSuch,
			about:   "Degrees left before the device slows down. AcceleratorsHot fires below the line." + onBoard,
			scale:   scale{none, []step{{nearLimitCelsius, red}}},
			queries: []query{perName(ofWholes, `accel_temperature_margin_celsius{limit="slowdown",`+ofWholes+`}`)},
		}),
		third(panel{
			kind: lines, title: "Throttled by heat or power brake", unit: "percentunit", min: f(0), max: f(1), limitLine: true, empty: "Not throttled, or not measured",
			about:   "Share of time in which the clocks were reduced because of a fault. AcceleratorsHot fires above the line for heat." + onBoard,
			scale:   scale{none, []step{{hotThrottleShare, red}}},
			queries: []query{{`clamp_max(sum by (name, reason) (` + named(ofWholes, `rate(accel_throttle_seconds_total{reason=~"`+harmful+`",`+ofWholes+`}[$__rate_interval]) > 0`) + `), 1)`, "{{name}} {{reason}}"}},
		}),
		{
			kind: lines, title: "Power", unit: "watt", min: f(0), dashed: "limit", empty: noSuch, width: 24, height: 8,
			about: "Power that each device draws; dashed, the lowest limit that is in force. At its limit a device is throttled, which is normal in training." + onBoard,
			queries: []query{
				perName(ofWholes, `accel_power_watts{`+ofWholes+`}`),
				{`min by (limit) (accel_power_limit_watts{limit="enforced",` + ofWholes + `})`, "limit: {{limit}}"},
			},
		},
	}
}

func nodeErrors() []panel {
	by := func(label, expr string) query {
		return query{`sum by (name, ` + label + `) (` + named(ofBox, `sum by (`+target+`, device, `+label+`) (`+expr+`)`) + `)`, "{{name}} {{" + label + "}}"}
	}
	return []panel{
		half(panel{
			kind: bars, title: "Xids and SXids", stacked: true, min: f(0), empty: "No Xid or SXid is counted on this node",
			about: "By device and number, including Xids of application errors (13, 31, 43, 69)." + onBoard,
			queries: []query{
				{`sum by (name, xid) (` + named(ofBox, happened(`accel_gpu_xid_errors_total{`+ofBox+`}`)) + `)`, "{{name}} Xid {{xid}}"},
				{`sum by (name, sxid) (` + named(ofBox, happened(`accel_nvswitch_sxid_errors_total{`+ofBox+`}`)) + `)`, "{{name}} SXid {{sxid}}"},
			},
		}),
		half(panel{
			kind: bars, title: "ECC errors", stacked: true, min: f(0), empty: "No ECC error is counted on this node",
			about:   "Corrected and uncorrected memory errors. Uncorrected errors lose work." + onBoard,
			queries: []query{by("severity", grew(`accel_ecc_errors_total{`+ofBox+`}`)+` > 0`)},
		}),
	}
}

func nodeLinks() []panel {
	both := func(received, sent string) []query {
		return []query{perName(ofWholes, received+" + "+perDevice+" "+sent)}
	}
	return []panel{
		half(panel{
			kind: lines, title: "PCIe traffic", unit: "Bps", min: f(0), empty: noSuch,
			about:   "Bytes received and sent over PCIe." + onBoard,
			queries: both(`rate(accel_pcie_receive_bytes_total{`+ofWholes+`}[$__rate_interval])`, `rate(accel_pcie_transmit_bytes_total{`+ofWholes+`}[$__rate_interval])`),
		}),
		half(panel{
			kind: bars, title: "PCIe errors", stacked: true, min: f(0), empty: "No PCIe error is reported on this node",
			about: "Reports of both ends of the links towards the device, and transactions that were repeated. Some correctable ones are normal, others never." + onBoard,
			queries: []query{
				{`sum by (name, severity) (` + named(ofBox, `sum by (`+target+`, device, severity) (`+grew(`accel_pcie_aer_reports_total{`+ofBox+`}`)+` > 0)`) + `)`, "{{name}} {{severity}}"},
				{`sum by (name) (` + named(ofBox, grew(`accel_pcie_replays_total{`+ofBox+`}`)+` > 0`) + `)`, "{{name}} replays"},
			},
		}),
		third(panel{
			kind: lines, title: "NVLink traffic", unit: "Bps", min: f(0), empty: noSuch,
			about:   "Bytes received and sent over all NVLinks of a GPU." + onBoard,
			queries: both(`accel_nvlink_receive_bytes_per_second{`+ofWholes+`}`, `accel_nvlink_transmit_bytes_per_second{`+ofWholes+`}`),
		}),
		third(panel{
			kind: lines, title: "NVLinks that are down", min: f(0), empty: "No NVLink; of a healthy GPU the links are not served in detail",
			about:   "Links that are not up, by device. A link that is down slows every multi-GPU job." + onBoard + needsDetail("a healthy device"),
			queries: []query{perName(ofBox, `sum by (`+target+`, device) (1 - accel_nvlink_up{`+ofBox+`})`)},
		}),
		third(panel{
			kind: bars, title: "NVLink errors", stacked: true, min: f(0), empty: "No NVLink error is counted",
			about:   "Errors by type over all links. The types overlap. A recovery costs time; a failed recovery costs the link." + onBoard,
			queries: []query{{`sum by (name, type) (` + named(ofBox, `sum by (`+target+`, device, type) (`+grew(`accel_gpu_nvlink_errors_total{`+ofBox+`}`)+` > 0)`) + `)`, "{{name}} {{type}}"}},
		}),
	}
}

func nodeIdentity() []panel {
	return []panel{
		{
			kind: listing, title: "Identity", width: 24, height: 8, empty: "No device is known",
			about:   "What each device is and where it is installed.",
			queries: []query{{expr: `max by (name, class, vendor, model, architecture, pci_address, numa_node, serial, device) (` + named(inBox, `accel_device_info{`+inBox+`}`) + `)`}},
			columns: []column{
				{of: "name", title: "Device", sortUp: true},
				{of: "class", title: "Class"},
				{of: "vendor", title: "Vendor"},
				{of: "model", title: "Model"},
				{of: "architecture", title: "Architecture"},
				{of: "pci_address", title: "PCI address"},
				{of: "numa_node", title: "NUMA node"},
				{of: "serial", title: "Serial"},
				{of: "device", title: "Id"},
			},
		},
		{
			kind: listing, title: "Firmware, and drift from the baseline", width: 24, height: 8, empty: "Not known, and nothing differs",
			about:   "Versions of firmware, and differences from the baseline: approved and actual values.",
			queries: []query{{expr: `max by (name, component, version, expected, actual) (` + named(ofBox, `max by (`+target+`, device, component, version) (accel_firmware_info{`+ofBox+`}) or max by (`+target+`, device, component, expected, actual) (accel_drift{`+ofBox+`} == 1)`) + `)`}},
			columns: []column{{of: "actual", title: "Differs: is"}, {of: "expected", title: "Differs: approved"}, {of: "name", title: "Device", sortUp: true}, {of: "component", title: "Component"}, {of: "version", title: "Version"}},
		},
	}
}
