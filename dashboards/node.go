package main

// node shows the state of every device of one node and its pods.
func node() board {
	return board{
		uid: "accel-node", title: "Accelerators / Node", from: "now-3h",
		about:     "Every device of one node at once: health, use, heat, links, errors and holders.",
		variables: []variable{datasource, oneCluster, oneNode, instances, jobs},
		events:    append([]event{alerts(onNode, ""), xids(inNode)}, off(holds(inNode))...),
		rows: []row{
			{title: "Is something wrong?", panels: nodeNow()},
			{title: "Devices", panels: []panel{nodeDevices(), whole(incidentsOf(inNode, unobserved(inNode))), whole(firingAlerts(firing(onNode))), whole(nodeTimeline())}},
			{title: "Pods", panels: []panel{nodeHolders(), nodeResources(), nodeUnattributed()}},
			{title: "Use", panels: nodeUse()},
			{title: "Temperature and power", panels: nodeHeat()},
			{title: "Links", panels: nodeLinks()},
			{title: "Errors", panels: nodeErrors()},
			{title: "FPGAs: designs and errors", folded: true, panels: fpgaParts(inNode, "{{device}} ")},
			{title: "NVSwitches", folded: true, panels: nodeSwitches()},
			{title: "Grace CPUs", folded: true, panels: nodeCPUs()},
			{title: "DCGM", folded: true, panels: nodeDCGM()},
		},
	}
}

// off returns events that are disabled by default.
func off(events []event) []event {
	for i := range events {
		events[i].off = true
	}
	return events
}

const (
	wholes     = `parent="",` + inNode
	noDevices  = "The node has no such device, or its exporter is down"
	noSuch     = "No device of this node measures it"
	anyDevices = `count(accel_device_info{` + inNode + `})`
)

func nodeNow() []panel {
	return []panel{
		tile(panel{
			kind: number, title: "Exporter", unit: "none", states: upStates, scale: low(1), empty: "Not scraped",
			about:   "Whether the node's exporter could be scraped. While it is down all values here are old.",
			queries: []query{{expr: `max(up{job=~"$job",` + inNode + `})`}},
		}),
		tile(panel{
			kind: number, title: "Failed devices", unit: "none", scale: bad(1), empty: "The state of the devices is unknown",
			about:   "Whole devices whose verdict is failed or unknown.",
			queries: []query{{expr: zeroWhere(`sum(accel_device_health{`+wholes+`,state=~"failed|unknown"})`, `count(accel_device_health{`+wholes+`})`)}},
		}),
		tile(panel{
			kind: number, title: "Degraded devices", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: "The state of the devices is unknown",
			about:   "Whole devices on which work continues although they need attention.",
			queries: []query{{expr: zeroWhere(`sum(accel_device_health{`+wholes+`,state="degraded"})`, `count(accel_device_health{`+wholes+`})`)}},
		}),
		tile(panel{
			kind: number, title: "Alerts", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noDevices,
			about:   "Alerts on this node that fire, of any severity.",
			queries: []query{{expr: zeroWhere(`count(`+firing(onNode)+`)`, anyDevices)}},
		}),
		tile(panel{
			kind: number, title: "Pods with devices", unit: "none", scale: only(blue), empty: "Allocations are unknown",
			about:   "Pods of this node with a device or a partition.",
			queries: []query{{expr: zeroWhere(`count(group by (namespace, pod) (accel_allocation_info{`+inNode+`}))`, `count(accel_device_holders{`+inNode+`})`)}},
		}),
		tile(panel{
			kind: number, title: "Driver", unit: "none", scale: only(blue), words: true, empty: "No driver has reported its version",
			about:   "Versions of the drivers of this node.",
			queries: []query{{`max by (vendor, version) (accel_driver_info{version!="",` + inNode + `})`, "{{version}}"}},
			links:   []jump{*jumpTo("accel-drift", "Rollout")},
		}),
	}
}

// nodeDevices is one row for each device, also for partitions.
func nodeDevices() panel {
	// Grafana joins the answers only if each has rows, so none is empty.
	all := func(expr string) string {
		const device = "max by (" + target + ", device) "
		return device + `(` + expr + `) or ` + perDevice + ` NaN * ` + device + `(accel_device_info{` + inNode + `})`
	}
	of := func(expr string) query {
		return query{expr: keep(host(named(inNode, all(expr), "model", "profile")), "host, name, device, model, profile")}
	}
	course := func(expr string) query {
		return query{`max by (scope, host, device) (` + scoped(host(all(expr))) + `)`, "{{host}} {{device}}"}
	}
	use := `accel_utilization_ratio{engine="compute",` + inNode + `} or on (` + target + `, device) accel_activity_ratio{unit="graphics",` + inNode + `}`
	power, heat := `accel_power_watts{`+inNode+`}`, `accel_temperature_celsius{`+inNode+`}`
	return panel{
		kind: listing, title: "Devices", unit: "none", width: 24, height: 12, empty: noDevices,
		about: "Current state of every device and MIG instance, and the course of its use, power and hottest sensor in the time range, each scaled to its own values. An empty cell means not measured, not 0. Red margins are where AcceleratorsHot fires.",
		queries: []query{
			of(healthOf(inNode)),
			of(`accel_device_holders{` + inNode + `}`),
			of(use),
			of(`accel_memory_used_bytes{` + inNode + `} / ` + perDevice + ` accel_memory_total_bytes{` + inNode + `}`),
			of(power),
			of(heat),
			of(`min by (` + target + `, device) (accel_temperature_margin_celsius{limit="slowdown",` + inNode + `})`),
			course(use), course(power), course(heat),
		},
		columns: []column{
			nameColumn.wide(110),
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 80},
			{of: "A", title: "Health", states: healthStates, width: 90, sort: true},
			{of: "B", title: "Holders", width: 80},
			{of: "C", title: "Use", unit: "percentunit", width: 100, gauge: true},
			{of: "H", title: "Use trend", unit: "percentunit", width: 110, course: true},
			{of: "D", title: "Memory", unit: "percentunit", width: 100, gauge: true},
			{of: "E", title: "Power", unit: "watt", width: 80},
			{of: "I", title: "Power trend", unit: "watt", width: 110, course: true},
			{of: "F", title: "Hottest", unit: "celsius", width: 80},
			{of: "J", title: "Heat trend", unit: "celsius", width: 110, course: true},
			{of: "G", title: "Margin", unit: "celsius", width: 90, scale: &scale{red, []step{{nearLimitCelsius, none}}}},
		},
	}
}

func nodeTimeline() panel {
	return panel{
		kind: timeline, title: "Health", unit: "none", states: healthStates, empty: noDevices,
		about:   "The verdict on each whole device. Failed means that work on it is lost, degraded that it continues, unknown that the device cannot be observed.",
		queries: []query{{`max by (name, to) (label_replace(` + named(wholes, healthOf(wholes)) + `, "to", "$1", "device", "(.+)"))`, "{{name}}"}},
		links:   []jump{*jumpTo("accel-device", "This device", "node", "$node", "device", "${__field.labels.to}")},
	}
}

func nodeHolders() panel {
	of := func(expr string) query {
		return query{expr: keep(host(named(inNode, "max by ("+target+", device, namespace, pod, resource) ("+expr+")")), "host, name, device, namespace, pod, resource")}
	}
	return panel{
		kind: listing, title: "Holders", unit: "none", width: 14, height: 9, empty: "No device is allocated, or the kubelet does not answer",
		about:   "Which pod has which device, under which resource, and whether it is used.",
		queries: []query{of(`accel_allocation_info{` + inNode + `}`), of(`accel_allocation_utilization_ratio{` + inNode + `}`), of(`accel_allocation_idle_seconds{` + inNode + `}`)},
		columns: []column{
			namespaceColumn, podColumn, nameColumn,
			{of: "resource", title: "Resource"},
			{of: "B", title: "Use", unit: "percentunit", width: 70},
			{of: "C", title: "Idle for", unit: "s", width: 90, sort: true},
		},
	}
}

func nodeResources() panel {
	of := func(name string) query { return query{expr: `max by (resource) (` + name + `{` + inNode + `})`} }
	return panel{
		kind: listing, title: "Resources", unit: "none", width: 10, height: 9, empty: "The kubelet does not answer",
		about:   "Per resource: devices of this node, allocatable ids, and allocated ids. Fewer allocatable ids than devices mean that the device plugin reports some as unhealthy.",
		queries: []query{of("accel_resource_devices"), of("accel_resource_allocatable"), of("accel_resource_held")},
		columns: []column{{of: "resource", title: "Resource"}, {of: "A", title: "Devices", width: 75}, {of: "B", title: "Allocatable", width: 95}, {of: "C", title: "Allocated", width: 85}},
	}
}

func nodeUnattributed() panel {
	return panel{
		kind: listing, title: "Use without an allocation", unit: "none", width: 24, height: 5, empty: "No such process, or processes cannot be listed",
		about:   "Processes that use a device which is not allocated to their pod. hidden: the process is not visible, which is not a violation.",
		queries: []query{{expr: keep(named(inNode, `max by (`+target+`, device, reason) (accel_unattributed_processes{`+inNode+`} > 0)`), "name, reason")}},
		columns: []column{{of: "name", title: "Device"}, {of: "reason", title: "Kind"}, {of: "A", title: "Processes", width: 85}},
	}
}

func nodeUse() []panel {
	return []panel{
		tall(panel{
			kind: lines, title: "Use", unit: "percentunit", min: f(0), max: f(1), empty: noSuch,
			about:   "Share of time in which a kernel ran. It does not show how much of the device the kernel used; see the dashboard of the device.",
			queries: []query{perName(wholes, `accel_utilization_ratio{engine="compute",`+wholes+`}`)},
		}),
		tall(panel{
			kind: lines, title: "Memory in use", unit: "percentunit", min: f(0), max: f(1), empty: noSuch,
			about:   "Share of the device's memory that is allocated. Frameworks allocate it in advance, so full is not bad by itself.",
			queries: []query{perName(inNode, `accel_memory_used_bytes{`+inNode+`} / `+perDevice+` accel_memory_total_bytes{`+inNode+`}`)},
		}),
		tall(panel{
			kind: lines, title: "Tensor cores active", unit: "percentunit", min: f(0), max: f(1), empty: noSuch,
			about:   "Share of cycles in which the tensor cores were active. If low while use is high, the device waits for memory or for the host.",
			queries: []query{perName(inNode, `accel_activity_ratio{unit="tensor",`+inNode+`}`)},
		}),
	}
}

func nodeHeat() []panel {
	return []panel{
		tall(panel{
			kind: lines, title: "Margin to slowdown", unit: "celsius", limitLine: true, empty: noSuch,
			about:   "Degrees left before the device slows down. AcceleratorsHot fires below the line.",
			scale:   scale{red, []step{{nearLimitCelsius, green}}},
			queries: []query{perName(wholes, `accel_temperature_margin_celsius{limit="slowdown",`+wholes+`}`)},
		}),
		tall(panel{
			kind: lines, title: "Power", unit: "watt", min: f(0), empty: noSuch,
			about:   "Power that each device draws. At its limit a device is throttled, which is normal in training.",
			queries: []query{perName(wholes, `accel_power_watts{`+wholes+`}`)},
		}),
		tall(panel{
			kind: lines, title: "Throttled by heat or power brake", unit: "percentunit", min: f(0), max: f(1), limitLine: true, empty: "No device of this node is throttled by heat or power brake, or none measures it",
			about:   "Share of time in which the clocks were reduced because of a fault. AcceleratorsHot fires above the line for heat.",
			scale:   bad(hotThrottleShare),
			queries: []query{{`clamp_max(sum by (name, reason) (` + named(wholes, `rate(accel_throttle_seconds_total{reason=~"hw_thermal|thermal|sw_thermal|hw_power_brake",`+wholes+`}[$__rate_interval]) > 0`) + `), 1)`, "{{reason}} {{name}}"}},
		}),
	}
}

func nodeLinks() []panel {
	return []panel{
		tall(panel{
			kind: lines, title: "PCIe traffic", unit: "Bps", min: f(0), empty: noSuch,
			about:   "Bytes received and sent over PCIe.",
			queries: []query{perName(wholes, `rate(accel_pcie_receive_bytes_total{`+wholes+`}[$__rate_interval]) + `+perDevice+` rate(accel_pcie_transmit_bytes_total{`+wholes+`}[$__rate_interval])`)},
		}),
		tall(panel{
			kind: lines, title: "NVLink traffic", unit: "Bps", min: f(0), empty: noSuch,
			about:   "Bytes received and sent over all NVLinks of a GPU.",
			queries: []query{perName(wholes, `accel_nvlink_receive_bytes_per_second{`+wholes+`} + `+perDevice+` accel_nvlink_transmit_bytes_per_second{`+wholes+`}`)},
		}),
		tall(panel{
			kind: timeline, title: "PCIe links with fewer lanes", unit: "none", empty: noSuch, states: yesBad,
			about:   "Whether the link uses fewer lanes than device and slot support, which is a fault of slot, riser or card. The generation may fall while idle and is not shown here.",
			queries: []query{perName(wholes, `(accel_pcie_link_width_lanes{`+wholes+`} < bool `+perDevice+` accel_pcie_link_width_max_lanes{`+wholes+`})`)},
		}),
	}
}

func nodeErrors() []panel {
	return []panel{
		third(panel{
			kind: bars, title: "Xids", unit: "none", stacked: true, min: f(0), empty: "No Xid is counted on this node",
			about:   "Xids by GPU and number, including application errors (13, 31, 43, 69).",
			queries: []query{{`sum by (name, xid) (` + named(inNode, happened(`accel_gpu_xid_errors_total{`+inNode+`}`)) + `)`, "Xid {{xid}}, {{name}}"}},
		}),
		third(panel{
			kind: bars, title: "ECC errors", unit: "none", stacked: true, min: f(0), empty: "No ECC error is counted on this node",
			about:   "Corrected and uncorrected memory errors. Uncorrected errors lose work.",
			queries: []query{{`sum by (name, severity) (` + named(wholes, `sum by (`+target+`, device, severity) (`+grew(`accel_ecc_errors_total{`+wholes+`}`)+` > 0)`) + `)`, "{{severity}} {{name}}"}},
		}),
		third(panel{
			kind: bars, title: "PCIe error reports", unit: "none", stacked: true, min: f(0), empty: "No PCIe error is reported on this node",
			about:   "Reports of both ends of the links towards the device. Some correctable ones are normal, others never.",
			queries: []query{{`sum by (name, severity) (` + named(wholes, `sum by (`+target+`, device, severity) (`+grew(`accel_pcie_aer_reports_total{`+wholes+`}`)+` > 0)`) + `)`, "{{severity}} {{name}}"}},
		}),
	}
}
