package main

import "strings"

const (
	drivers   = `accel_driver_info{version!="",` + inPool + `}`
	noDrivers = "No driver has reported its version"
)

// What is installed, as one series for each node, component and version. The
// components are named as in accel_drift.
var (
	software  = stack()
	firmwares = ofModel(`accel_firmware_info{parent="",component!~"inforom_.+",` + inPool + `}`)
	layouts   = ofModel(strings.Join([]string{
		`label_replace(label_replace(accel_mig_mode_enabled{parent="",when="current",` + inPool + `} == 1, "version", "on", "", ""), "component", "mode", "", "")`,
		`label_replace(label_replace(accel_mig_mode_enabled{parent="",when="current",` + inPool + `} == 0, "version", "off", "", ""), "component", "mode", "", "")`,
		`label_replace(count_values by (` + target + `, device, profile) ("version", accel_mig_instances{` + inPool + `}), "component", "$1", "profile", "(.+)")`,
		`label_replace(accel_drift{component="mig",` + inPool + `}, "version", "$1", "actual", "(.+)")`,
		`label_replace(label_join(accel_fpga_bitstream_info{` + inPool + `}, "component", "/", "region", "kind"), "version", "$1", "id", "(.+)")`,
		`label_replace(label_replace(accel_fpga_root_key_info{` + inPool + `}, "component", "root_key/$1", "key", "(.+)"), "version", "$1", "hash", "(.+)")`,
	}, " or "))
)

// stack is the components of the driver stack.
func stack() string {
	var all []string
	for _, c := range [][2]string{{"driver", "version"}, {"cuda", "cuda_version"}, {"library", "library_version"}} {
		of := `label_replace(group by (` + target + `, vendor, ` + c[1] + `) (accel_driver_info{` + c[1] + `!="",` + inPool + `}), "model", "$1", "vendor", "(.+)")`
		of = `label_replace(` + of + `, "version", "$1", "` + c[1] + `", "(.+)")`
		all = append(all, `label_replace(group by (`+target+`, model, version) (`+of+`), "component", "`+c[0]+`", "", "")`)
	}
	return strings.Join(all, " or ")
}

// ofModel adds the model of the device; the join is most of the cost, so there is one.
func ofModel(expr string) string {
	return `group by (` + target + `, model, component, version) ((` + expr + `) * ` + perDevice + ` group_left (model) accel_device_info{parent="",` + inPool + `})`
}

const inGroup = "cluster, pool, model, component"

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

var versionStates = []state{
	{"0", "approved", green},
	{"1", "not approved", orange},
	{"2", "the only one", none},
	{"3", "half or more", blue},
	{"4", "other", yellow},
}

// versions lists what of a kind runs in each pool, splits first.
func versions(title, of, installed, empty, about string) panel {
	g := groupOf(installed)
	drift := `max by (cluster, pool, component, version) (label_replace(accel_drift{component!~"held/.+",` + inPool + `}, "version", "$1", "actual", "(.+)"))`
	verdict := `0 * ` + g.nodes + ` + on (cluster, pool, component, version) group_left () ` + drift +
		` or 4 - floor(2 * ` + g.nodes + ` / on (` + inGroup + `) group_left () sum by (` + inGroup + `) (` + g.nodes + `))`
	return half(panel{
		kind: listing, title: title, empty: empty, complete: "BC",
		about: about + " Nodes by pool and version, splits first. Without an approved value, a version that half of the nodes or more have is blue.",
		queries: []query{
			{expr: g.nodes},
			{expr: `0 * ` + g.nodes + ` + on (` + inGroup + `) group_left () count by (` + inGroup + `) (` + g.nodes + `)`},
			{expr: verdict},
		},
		columns: []column{
			{of: "B", title: "Versions", sort: true, hidden: true},
			poolColumn.wide(65),
			{of: "model", title: of},
			{of: "component", title: "Component", sortUp: true},
			{of: "version", title: "Version"},
			{of: "C", title: "State", states: versionStates, width: 110},
			{of: "A", title: "Nodes", width: 55},
			clusterColumn.wide(60),
		},
	})
}

func rollout() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Nodes by driver", stacked: true, min: f(0), empty: noDrivers,
			about:   "Nodes by version of the driver. During a rollout one colour replaces another; a rollout that stops half way is drift.",
			queries: []query{{`count by (vendor, version) (` + drivers + `)`, "{{vendor}} {{version}}"}},
		}),
		versions("Versions of the driver stack", "Vendor", software, noDrivers, "driver: of the kernel; cuda: the newest that the driver supports; library: NVML.").sized(16, 8),
		versions("Firmware", "Model", firmwares, "No firmware is known", "Each firmware component of whole devices."),
		versions("MIG layouts, bitstreams and root keys", "Model", layouts, "No GPU supports MIG, and no FPGA has a known bitstream", "mode: whether MIG mode is on; a profile: its instances on a GPU; mig: the whole layout, where a baseline is compared with it; else what is loaded in each region of an FPGA, and the keys that images must be signed with."),
	}
}
