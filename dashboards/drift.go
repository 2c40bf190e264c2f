package main

import "fmt"

// drift shows which versions run where, the progress of a rollout, and what is
// not approved.
func drift(v *values) board {
	return board{
		uid: "accel-drift", title: "Accelerators / Driver and firmware drift", from: "now-24h",
		about:     "Versions of drivers, firmware, MIG layouts and FPGA designs by pool, how far a rollout is, and what is not approved.",
		variables: []variable{datasource, cluster, pool},
		events: []event{{
			name: "Driver changes", colour: blue,
			expr:  `count by (pool, version) (accel_driver_info{version!="",` + inPool + `} unless on (` + target + `, version) accel_driver_info{` + inPool + `} offset 1m and on (` + target + `) accel_driver_info{` + inPool + `} offset 1m)`,
			title: "Driver {{version}}", text: "{{pool}}",
		}},
		rows: []row{
			{title: "Does anything differ?", panels: driftNow(v)},
			{title: "Drivers", panels: []panel{half(driverMatrix()), half(cudaMatrix()), driverNodes(), rollout()}},
			{title: "Not approved", panels: []panel{whole(deviations())}},
			{title: "Firmware and partitions", panels: []panel{firmware(), migLayouts()}},
			{title: "FPGA designs and keys", panels: []panel{designs(), rootKeys()}},
		},
	}
}

const (
	drivers   = `accel_driver_info{version!="",` + inPool + `}`
	noDrivers = "No driver has reported its version"
)

// recentDrift is the devices and components that are not approved. Those of
// GPUs are recorded too seldom for an instant query.
func recentDrift(v *values) string {
	window := fmt.Sprintf("%.0fm", 5+v.duration("trends_interval").Minutes())
	return `last_over_time(device_component:accel_drift:active{` + inPool + `}[` + window + `]) or device_component:accel_fpga_drift:active{` + inPool + `}`
}

func driftNow(v *values) []panel {
	several := func(by, what string) string {
		return zeroWhere(`count(count by (`+by+`) (`+what+`) > 1)`, `count(`+drivers+`)`)
	}
	return []panel{
		wideTile(panel{
			kind: number, title: "Pools with several drivers", unit: "none", empty: noDrivers,
			about:   "Pools whose nodes run more than one version of a vendor's driver. Normal during a rollout; DriverDriftInPool fires after " + v.string("rollout_time") + ".",
			scale:   scale{green, []step{{1, orange}}},
			queries: []query{{expr: several("cluster, pool, vendor", `group by (cluster, pool, vendor, version) (`+drivers+`)`)}},
		}),
		wideTile(panel{
			kind: number, title: "Devices not approved", unit: "none", empty: "There is no baseline",
			about:   "Devices with at least one component that the baseline catalogue does not approve.",
			scale:   scale{green, []step{{1, orange}}},
			queries: []query{{expr: zeroWhere(`count(group by (`+target+`, device) (`+recentDrift(v)+`))`, `sum(accel_baseline_entries{`+inPool+`})`)}},
		}),
		wideTile(panel{
			kind: number, title: "Devices without a baseline", unit: "none", empty: "No devices",
			about:   "Whole devices that no entry of a baseline catalogue matches: their drift is not detected.",
			scale:   scale{green, []step{{1, yellow}}},
			queries: []query{{expr: zeroWhere(`count(accel_device_info{parent="",class!="switch",`+inPool+`} unless `+perDevice+` accel_baseline_info{`+inPool+`})`, `count(accel_device_info{`+inPool+`})`)}},
		}),
		wideTile(panel{
			kind: number, title: "Nodes by driver", unit: "none", both: true, empty: noDrivers,
			about:   "Nodes that run the version that most nodes run, and how many run another.",
			scale:   only(blue),
			queries: []query{{`max(count by (version) (` + drivers + `))`, "with the commonest"}, {`count(` + drivers + `) - max(count by (version) (` + drivers + `))`, "with another"}},
		}),
	}
}

func driverMatrix() panel {
	return panel{
		kind: listing, title: "Nodes by pool and driver", unit: "none", empty: noDrivers,
		about:   "How many nodes of each pool run each version of the driver. A row with one column is a pool with one version. An empty row name is the pool of nodes without the label pool.",
		matrix:  &matrix{row: "pool", column: "version"},
		queries: []query{{expr: `count by (pool, version) (` + drivers + `)`}},
	}
}

func cudaMatrix() panel {
	return panel{
		kind: listing, title: "Nodes by pool and CUDA", unit: "none", empty: "No CUDA",
		about:   "How many nodes of each pool support each CUDA at most. Several with one driver mean that a node has another libcuda or a compatibility library.",
		matrix:  &matrix{row: "pool", column: "cuda_version"},
		queries: []query{{expr: `count by (pool, cuda_version) (accel_driver_info{cuda_version!="",` + inPool + `})`}},
	}
}

func driverNodes() panel {
	return half(panel{
		kind: listing, title: "Nodes without the most common driver", unit: "none", empty: "All nodes of each pool run one driver",
		about:   "Nodes whose driver differs from that of most nodes of their pool: the last or the first nodes of a rollout.",
		queries: []query{{expr: keep(host(drivers+` unless on (cluster, pool, vendor, version) (count by (cluster, pool, vendor, version) (`+drivers+`) == on (cluster, pool, vendor) group_left () max by (cluster, pool, vendor) (count by (cluster, pool, vendor, version) (`+drivers+`)))`), "pool, host, vendor, version, branch")}},
		columns: []column{{of: "pool", title: "Pool"}, nodeColumn, {of: "vendor", title: "Vendor"}, {of: "version", title: "Driver"}, {of: "branch", title: "Branch"}, {of: "A", title: "Runs", hidden: true}},
	})
}

func rollout() panel {
	return half(panel{
		kind: lines, title: "Rollout", unit: "none", stacked: true, min: f(0), empty: noDrivers,
		about:   "Nodes by version of the driver. During a rollout one colour replaces another; a rollout that stops half way is drift.",
		queries: []query{{`count by (vendor, version) (` + drivers + `)`, "{{vendor}} {{version}}"}},
	})
}

func deviations() panel {
	return panel{
		kind: listing, title: "Devices that differ from the baseline", unit: "none", empty: "All devices are approved, or there is no baseline",
		about:   "Approved values of the baseline, or of the resource name of the allocation, and the actual values. Components with a slash belong to FPGAs: region/kind, root_key/key, held/what.",
		queries: []query{{expr: keep(host(named(inPool, `max by (`+target+`, device, component, expected, actual) (accel_drift{`+inPool+`} == 1)`, "model")), "pool, host, name, device, model, component, expected, actual")}},
		columns: []column{
			{of: "pool", title: "Pool"},
			nodeColumn, nameColumn, idColumn,
			{of: "model", title: "Model"},
			{of: "component", title: "Component"},
			{of: "actual", title: "Is"},
			{of: "expected", title: "Approved"},
			{of: "A", title: "Differs", hidden: true},
		},
	}
}

func firmware() panel {
	return panel{
		kind: listing, title: "Firmware by pool and model", unit: "none", width: 14, height: 10, empty: "No firmware is known",
		about:   "Whole devices by version of each firmware component. Two lines of one component are two versions in one pool: FirmwareDriftInPool.",
		queries: []query{{expr: `count by (pool, model, component, version) (accel_firmware_info{parent="",component!~"inforom.*",` + inPool + `} * ` + perDevice + ` group_left (model) accel_device_info{parent="",` + inPool + `})`}},
		columns: []column{{of: "pool", title: "Pool"}, {of: "model", title: "Model"}, {of: "component", title: "Component"}, {of: "version", title: "Version"}, {of: "A", title: "Devices", width: 90}},
	}
}

func migLayouts() panel {
	return panel{
		kind: listing, title: "MIG layouts by node", unit: "none", width: 10, height: 10, empty: "No GPU is partitioned",
		about:   "MIG instances of each profile by node. Nodes of one pool should be the same. A reboot loses a layout unless a tool restores it.",
		queries: []query{{expr: scoped(`sum by (cluster, pool, host, profile) (` + host(`accel_mig_instances{`+inPool+`}`) + `)`)}},
		columns: []column{{of: "pool", title: "Pool"}, nodeColumn, {of: "profile", title: "Profile"}, {of: "A", title: "Instances", width: 90}},
	}
}

func designs() panel {
	return panel{
		kind: listing, title: "Bitstreams by pool and model", unit: "none", width: 14, height: 10, empty: "No FPGA with a known bitstream",
		about:   "FPGA cards by what is loaded in each region. Of the static parts (fim, shell, pr_interface, boot_image) a pool should have one per model: FpgaDesignDriftInPool.",
		queries: []query{{expr: `count by (pool, model, region, kind, id) (accel_fpga_bitstream_info{` + inPool + `} * ` + perDevice + ` group_left (model) accel_device_info{parent="",` + inPool + `})`}},
		columns: []column{{of: "pool", title: "Pool"}, {of: "model", title: "Model"}, {of: "region", title: "Region"}, {of: "kind", title: "Kind"}, {of: "id", title: "Bitstream"}, {of: "A", title: "Cards", width: 80}},
		links:   []jump{*jumpTo("accel-fpga", "FPGAs")},
	}
}

func rootKeys() panel {
	return panel{
		kind: listing, title: "Root keys", unit: "none", width: 10, height: 10, empty: "No card reports its root keys",
		about:   "Cards by the key that images must be signed with. none: the card accepts any image.",
		queries: []query{{expr: `count by (pool, key, hash) (accel_fpga_root_key_info{` + inPool + `})`}},
		columns: []column{{of: "pool", title: "Pool"}, {of: "key", title: "Key", width: 70}, {of: "hash", title: "Hash"}, {of: "A", title: "Cards", width: 80}},
	}
}
