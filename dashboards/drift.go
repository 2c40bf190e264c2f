package main

import "strings"

// drift shows the rollout: what is approved and how far each pool is, which nodes
// are left and whose pods block them, and which versions run where.
func drift() board {
	return board{
		uid: "accel-drift", title: "Accelerators / Rollout", from: "now-24h",
		about:     "How far each pool is with the approved drivers, firmware, MIG layouts and FPGA designs, which nodes are left, and which pods block them.",
		variables: []variable{datasource, cluster, pool},
		events: []event{{
			name: "Driver changes", colour: blue,
			expr:  `count by (pool, version) (accel_driver_info{version!="",` + inPool + `} unless on (` + target + `, version) accel_driver_info{` + inPool + `} offset 1m and on (` + target + `) accel_driver_info{` + inPool + `} offset 1m)`,
			title: "Driver {{version}}", text: "{{pool}}",
		}},
		rows: []row{
			{title: "Does anything differ?", panels: driftNow()},
			{title: "Targets", panels: []panel{targets(), rollout()}},
			{title: "What is left, and who blocks it?", panels: []panel{nodesLeft(), blockers()}},
			{title: "Driver, CUDA and library", panels: []panel{whole(versions("Versions of the driver stack", "Vendor", software, noDrivers, "driver: of the kernel; cuda: the newest that the driver supports; library: NVML."))}},
			{title: "Firmware, MIG layouts and bitstreams", panels: []panel{
				whole(versions("Firmware", "Model", firmwares, "No firmware is known", "Each firmware component of whole devices.")),
				whole(versions("MIG layouts", "Model", layouts, "No GPU supports MIG", "mode: whether MIG mode is on; a profile: its instances on a GPU; mig: the whole layout, where a baseline is compared with it.")),
				whole(versions("Bitstreams and root keys", "Model", bitstreams, "No FPGA with a known bitstream", "What is loaded in each region, and the keys that images must be signed with. Of the static parts (fim, shell, pr_interface, boot_image) a pool should have one per model.")),
			}},
		},
	}
}

const (
	drivers   = `accel_driver_info{version!="",` + inPool + `}`
	noDrivers = "No driver has reported its version"
)

// What is installed, as one series for each node, component and version. The
// components are named as in accel_drift.
var (
	software  = stack("group", func(has string) string { return `accel_driver_info{` + has + `,` + inPool + `}` })
	firmwares = `group by (` + target + `, model, component, version) (` + ofModel(`accel_firmware_info{parent="",component!~"inforom_.+",`+inPool+`}`) + `)`
	layouts   = component("mode", ofModel(`(label_replace(accel_mig_mode_enabled{parent="",when="current",`+inPool+`} == 1, "version", "on", "", "") or label_replace(accel_mig_mode_enabled{parent="",when="current",`+inPool+`} == 0, "version", "off", "", ""))`)) +
		` or group by (` + target + `, model, component, version) (label_replace(` + ofModel(`count_values by (`+target+`, device, profile) ("version", accel_mig_instances{`+inPool+`})`) + `, "component", "$1", "profile", "(.+)"))` +
		` or ` + component("mig", ofModel(`label_replace(accel_drift{component="mig",`+inPool+`}, "version", "$1", "actual", "(.+)")`))
	bitstreams = `group by (` + target + `, model, component, version) (` + ofModel(`(label_replace(label_join(accel_fpga_bitstream_info{`+inPool+`}, "component", "/", "region", "kind"), "version", "$1", "id", "(.+)") or label_replace(label_replace(accel_fpga_root_key_info{`+inPool+`}, "component", "root_key/$1", "key", "(.+)"), "version", "$1", "hash", "(.+)"))`) + `)`
)

func component(name, expr string) string { return componentBy("group", name, expr) }

func componentBy(reduce, name, expr string) string {
	return `label_replace(` + reduce + ` by (` + target + `, model, version) (` + expr + `), "component", "` + name + `", "", "")`
}

// stack is the components of the driver stack, from series with the labels of
// accel_driver_info that have a version of the component.
func stack(reduce string, of func(has string) string) string {
	var all []string
	for _, c := range [][2]string{{"driver", "version"}, {"cuda", "cuda_version"}, {"library", "library_version"}} {
		of := `label_replace(` + reduce + ` by (` + target + `, vendor, ` + c[1] + `) (` + of(c[1]+`!=""`) + `), "model", "$1", "vendor", "(.+)")`
		if c[1] != "version" {
			of = `label_replace(` + of + `, "version", "$1", "` + c[1] + `", "(.+)")`
		}
		all = append(all, componentBy(reduce, c[0], of))
	}
	return strings.Join(all, " or ")
}

// softwareSince is when each node began to run what it has of the driver stack: when
// it was last seen with another version, else first seen with this one.
func softwareSince() string {
	const part = target + ", model, component"
	seen := func(which string) string {
		return stack(which, func(has string) string {
			return which + `_over_time(timestamp(accel_driver_info{` + has + `,` + inPool + `})[7d:10m])`
		})
	}
	since := `max by (` + part + `) ((` + seen("max") + `) unless on (` + part + `, version) (` + software + `)) or min by (` + part + `) (` + seen("min") + `)`
	return `max by (` + target + `, component, actual) (label_replace((` + software + `) * on (` + part + `) group_left () (` + since + `), "actual", "$1", "version", "(.+)"))`
}

// ofModel adds the model of the device.
func ofModel(expr string) string {
	return expr + ` * ` + perDevice + ` group_left (model) max by (` + target + `, device, model) (accel_device_info{parent="",` + inPool + `})`
}

const (
	inGroup = "cluster, pool, model, component"
	// compared is the components of all devices that a baseline approves; the design of
	// an allocation is not rolled out.
	compared = `accel_drift{component!~"held/.+",` + inPool + `}`
	// notApproved is the devices and components that are not approved, also by the
	// resource name of an allocation.
	notApproved = `(max by (` + target + `, device, component) (accel_drift{` + inPool + `}) == 1)`
)

// group is what a pool has of each component: nodes by version, and the versions
// that most nodes have, of which a tie has several.
type group struct{ nodes, top, tie, split string }

func groupOf(installed string) group {
	n := `count by (` + inGroup + `, version) (` + installed + `)`
	top := `(` + n + ` == on (` + inGroup + `) group_left () max by (` + inGroup + `) (` + n + `))`
	return group{
		nodes: n, top: top,
		tie:   `(count by (` + inGroup + `) ` + top + ` > 1)`,
		split: `(count by (` + inGroup + `) (` + n + `) > 1)`,
	}
}

func driftNow() []panel {
	several := zeroWhere(`count(count by (cluster, pool, vendor) (group by (cluster, pool, vendor, version) (`+drivers+`)) > 1)`, `count(`+drivers+`)`)
	return []panel{
		tile(panel{
			kind: number, title: "At the target", unit: "percentunit", decimals: f(1), empty: "There is no baseline",
			about:   "Share of the compared components of all devices that the baseline approves.",
			scale:   scale{orange, []step{{1, green}}},
			queries: []query{{expr: `1 - avg(` + compared + `)`}},
		}),
		tile(panel{
			kind: number, title: "Nodes left", unit: "none", empty: "There is no baseline",
			about:   "Nodes with at least one component that the baseline does not approve.",
			scale:   scale{green, []step{{1, orange}}},
			queries: []query{{expr: zeroWhere(`count(group by (`+target+`) (`+compared+` == 1))`, `sum(accel_baseline_entries{`+inPool+`})`)}},
		}),
		tile(panel{
			kind: number, title: "Devices not approved", unit: "none", empty: "There is no baseline",
			about:   "Devices with at least one component that the baseline catalogue does not approve.",
			scale:   scale{green, []step{{1, orange}}},
			queries: []query{{expr: zeroWhere(`count(group by (`+target+`, device) (`+notApproved+`))`, `sum(accel_baseline_entries{`+inPool+`})`)}},
		}),
		tile(panel{
			kind: number, title: "Driver splits", unit: "none", empty: noDrivers,
			about:   "Pools whose nodes run more than one version of a vendor's driver. Normal during a rollout; AcceleratorDriftInPool fires after three days.",
			scale:   scale{green, []step{{1, orange}}},
			queries: []query{{expr: several}},
		}),
		tile(panel{
			kind: number, title: "Without a majority", unit: "none", empty: noDrivers,
			about:   "Drivers of a pool of which no version has more nodes than each other one: it is unknown which is right.",
			scale:   scale{green, []step{{1, orange}}},
			queries: []query{{expr: zeroWhere(`count(`+groupOf(component("driver", `label_replace(`+drivers+`, "model", "$1", "vendor", "(.+)")`)).tie+`)`, `count(`+drivers+`)`)}},
		}),
		tile(panel{
			kind: number, title: "Without a baseline", unit: "none", empty: "No devices",
			about:   "Whole devices that no entry of a baseline catalogue matches: their drift is not detected.",
			scale:   scale{green, []step{{1, yellow}}},
			queries: []query{{expr: zeroWhere(`count(accel_device_info{parent="",class!="switch",`+inPool+`} unless `+perDevice+` accel_baseline_info{`+inPool+`})`, `count(accel_device_info{`+inPool+`})`)}},
		}),
	}
}

// targets has what the baseline approves, and how far each pool is.
func targets() panel {
	const by = "cluster, pool, component, expected"
	devices := `max by (` + target + `, device, component, expected) (` + compared + `)`
	all := `count by (` + by + `) (` + devices + `)`
	return panel{
		kind: listing, title: "Approved by the baseline, and the share of each pool that has it", unit: "none", width: 14, height: 10, empty: "There is no baseline, or no device that it is compared with answers",
		about: "Each approved value of the baseline catalogue, the least complete first. Devices that do not answer are not counted.",
		queries: []query{
			{expr: `1 - avg by (` + by + `) (` + devices + `)`},
			{expr: zeroWhere(`count by (`+by+`) (group by (`+target+`, component, expected) (`+compared+` == 1))`, all)},
			{expr: `sum by (` + by + `) (` + devices + `)`},
			{expr: all},
		},
		columns: []column{
			clusterColumn, poolColumn,
			{of: "component", title: "Component", width: 120},
			{of: "expected", title: "Target"},
			{of: "A", title: "Done", unit: "percentunit", width: 120, sortUp: true, gauge: true},
			{of: "B", title: "Nodes left", width: 90, scale: &scale{none, []step{{1, orange}}}},
			{of: "C", title: "Devices left", width: 100},
			{of: "D", title: "Devices", width: 75},
		},
	}
}

// leftOver has a row for each node and component: what the baseline does not approve,
// and without a baseline what most nodes of the pool do not run.
func leftOver() string {
	const row = target + ", component, expected, actual"
	g := groupOf(software)
	other := `((` + software + `) unless on (cluster, pool, component) ` + compared + ` and on (` + inGroup + `) ` + g.split + ` unless on (` + inGroup + `, version) (` + g.top + ` unless on (` + inGroup + `) ` + g.tie + `))`
	other = `label_replace(` + other + `, "actual", "$1", "version", "(.+)")`
	return `group by (` + row + `) (max by (` + row + `, device) (` + compared + ` == 1)` +
		` or label_replace(` + other + ` and on (` + inGroup + `) ` + g.tie + `, "expected", "unknown: no majority", "", "")` +
		` or label_replace(` + other + ` unless on (` + inGroup + `) ` + g.tie + `, "expected", "unknown: most run another", "", ""))`
}

func nodesLeft() panel {
	rows := leftOver()
	of := func(expr string) query {
		return query{expr: keep(host(expr), "pool, host, component, expected, actual")}
	}
	join := func(expr, rows string) string {
		return `(` + rows + `) * on (` + target + `) group_left () (` + expr + `)`
	}
	since := `max by (` + target + `, component, expected, actual) (` + compared + ` == 1) * on (cluster, node, component) group_left () max by (cluster, node, component) (ALERTS_FOR_STATE{alertname="AcceleratorDrift",` + inAnyPool + `})`
	return panel{
		kind: listing, title: "Nodes that are left", unit: "none", width: 24, height: 11, empty: "Every node has what is approved; without a baseline, the driver stack that most nodes of its pool have",
		about: "One row for each node and component. Approved: by the baseline, or by the resource name of the allocation (held/…). Where no baseline applies, nodes whose driver, CUDA or library differs from that of most nodes of their pool, and on a tie all of them. Since: when the node began to differ; without a baseline when it began to run the version, within ten minutes and the last 7 days. Pods: those with a device of the node, which a change of it must wait for.",
		queries: []query{
			of(rows),
			of(`1000 * (` + since + ` or (` + rows + ` unless on (` + target + `, component) ` + compared + `) * on (` + target + `, component, actual) group_left () ` + softwareSince() + `)`),
			of(`sum by (` + target + `, component, expected, actual) (` + compared + ` == 1)`),
			of(join(`count by (`+target+`) (group by (`+target+`, namespace, pod) (accel_allocation_info{`+inPool+`}))`, rows)),
		},
		columns: []column{
			poolColumn, nodeColumn,
			{of: "component", title: "Component", width: 140},
			{of: "actual", title: "Is"},
			{of: "expected", title: "Approved"},
			{of: "C", title: "Devices", width: 80},
			{of: "B", title: "Since", unit: "dateTimeFromNow", blank: "not known", width: 130},
			{of: "D", title: "Pods", blank: "none", width: 75, sort: true, scale: &scale{none, []step{{1, blue}}}},
		},
	}
}

// blockers are the pods that a change of a node must wait for.
func blockers() panel {
	of := func(expr string) query {
		return query{expr: keep(host(`(`+expr+`) and on (`+target+`) (`+leftOver()+`)`), "host, namespace, pod")}
	}
	return panel{
		kind: listing, title: "Pods on these nodes", unit: "none", width: 24, height: 8, empty: "No pod has a device of a node that is left: drain and change them now",
		about: "Who blocks the change: each pod with a device of a node that is left, how many devices it has there, since when, and for how long all of them are idle.",
		queries: []query{
			of(`count by (` + target + `, namespace, pod) (group by (` + target + `, device, namespace, pod) (accel_allocation_info{` + inPool + `}))`),
			of(`max by (` + target + `, namespace, pod) (accel_allocation_seconds_total{` + inPool + `})`),
			of(`min by (` + target + `, namespace, pod) (accel_allocation_idle_seconds{` + inPool + `})`),
		},
		columns: []column{
			nodeColumn, namespaceColumn, podColumn,
			{of: "A", title: "Devices", width: 80, sort: true},
			{of: "B", title: "Allocated for", unit: "s", width: 110},
			{of: "C", title: "Idle for", unit: "s", width: 100},
		},
	}
}

var versionStates = []state{
	{"0", "approved", green},
	{"1", "not approved", orange},
	{"2", "the only one", none},
	{"3", "most nodes", blue},
	{"4", "other", yellow},
	{"5", "no majority", orange},
}

// versions lists what of a kind runs in each pool, splits first.
func versions(title, of, installed, empty, about string) panel {
	g := groupOf(installed)
	drift := `max by (cluster, pool, component, version) (label_replace(` + compared + `, "version", "$1", "actual", "(.+)"))`
	verdict := `0 * ` + g.nodes + ` + on (cluster, pool, component, version) group_left () ` + drift +
		` or 4 * ` + g.nodes + ` ^ 0 unless on (` + inGroup + `, version) ` + g.top + ` or 5 * ` + g.top + ` ^ 0 and on (` + inGroup + `) ` + g.tie +
		` or 3 * ` + g.top + ` ^ 0 and on (` + inGroup + `) ` + g.split + ` or 2 * ` + g.nodes + ` ^ 0`
	return panel{
		kind: listing, title: title, unit: "none", empty: empty,
		about: about + " Nodes by pool and version, splits first. Without an approved value, the version that most nodes have is blue; where no version has more nodes than the others, the row reads \"no majority\".",
		queries: []query{
			{expr: g.nodes},
			{expr: g.nodes + ` / on (` + inGroup + `) group_left () count by (` + inGroup + `) (group by (` + target + `, model, component) (` + installed + `))`},
			{expr: `0 * ` + g.nodes + ` + on (` + inGroup + `) group_left () count by (` + inGroup + `) (` + g.nodes + `)`},
			{expr: verdict},
		},
		columns: []column{
			clusterColumn, poolColumn,
			{of: "C", title: "Versions", width: 80, sort: true, scale: &scale{none, []step{{2, orange}}}},
			{of: "model", title: of},
			{of: "component", title: "Component", sortUp: true},
			{of: "version", title: "Version"},
			{of: "D", title: "State", states: versionStates, width: 100},
			{of: "A", title: "Nodes", width: 70},
			{of: "B", title: "Share", unit: "percentunit", width: 100, gauge: true},
		},
	}
}

func driverMatrix() panel {
	return panel{
		kind: listing, title: "Nodes by pool and driver", unit: "none", empty: noDrivers,
		about:   "How many nodes of each pool run each version of the driver. A row with one column is a pool with one version. A row is named by cluster and pool, and empty for nodes without these labels.",
		matrix:  &matrix{row: "pool", column: "version"},
		queries: []query{{expr: `count by (pool, version) (label_join(` + drivers + `, "pool", " ", "cluster", "pool"))`}},
	}
}

func rollout() panel {
	return panel{
		kind: lines, title: "Nodes by driver", unit: "none", width: 10, height: 10, stacked: true, min: f(0), empty: noDrivers,
		about:   "Nodes by version of the driver. During a rollout one colour replaces another; a rollout that stops half way is drift.",
		queries: []query{{`count by (vendor, version) (` + drivers + `)`, "{{vendor}} {{version}}"}},
	}
}
