package main

// What only DCGM reports: NVSwitches, Grace CPUs, its own checks, and the state
// of its measurements. The rows are folded, since most nodes have none of it.

const (
	ofSwitches = `class="switch",` + inNode
	ofCPUs     = `class="cpu",` + inNode
	noDCGM     = "DCGM is not used; enable it with --dcgm.embedded or --dcgm.address"
	noSwitches = "DCGM is not used, or sees no NVSwitch on this node"
	noCPUs     = "DCGM is not used, or sees no Grace CPU on this node"
)

// watchStates are the values of watchOf.
var watchStates = []state{{"0", "pass", green}, {"1", "warn", orange}, {"2", "fail", red}}

// watchOf is the result of DCGM's health watches as a number, see watchStates.
func watchOf(selector string) string {
	return `(accel_dcgm_health{state="warn",` + selector + `} + ignoring (state) 2 * accel_dcgm_health{state="fail",` + selector + `})`
}

// perKind is one series for each device of the class that the selector names;
// the expression may have the series of other classes too.
func perKind(selector, expr string) query {
	return query{`max by (name) (` + named(selector, `sum by (`+target+`, device) (`+expr+`)`) + `)`, "{{name}}"}
}

func nodeSwitches() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Temperature of NVSwitches", unit: "celsius", dashed: "limit", empty: noSwitches,
			about:   "Temperature of each switch; dashed, the limits at which one slows down or switches off, and all GPUs behind it with it.",
			queries: []query{perName(ofSwitches, `accel_temperature_celsius{sensor="switch",`+inNode+`}`), {`min by (limit) (accel_temperature_limit_celsius{sensor="switch",` + inNode + `})`, "limit {{limit}}"}},
		}),
		third(panel{
			kind: lines, title: "NVLinks of NVSwitches that are down", unit: "none", min: f(0), empty: noSwitches,
			about:   "Links of each switch that are not up. DCGM does not count unconnected links." + needsDetail("healthy switches"),
			queries: []query{perKind(ofSwitches, `1 - accel_nvlink_up{`+inNode+`}`)},
		}),
		third(panel{
			kind: bars, title: "Errors of their NVLinks", unit: "none", stacked: true, min: f(0), empty: "No NVSwitch has counted an error",
			about:   "Errors of all links of a switch, by type. The types overlap.",
			queries: []query{{`sum by (name, type) (` + named(ofSwitches, `sum by (`+target+`, device, type) (`+grew(`accel_gpu_nvlink_errors_total{`+inNode+`}`)+` > 0)`) + `)`, "{{type}} {{name}}"}},
		}),
		half(panel{
			kind: listing, title: "SXids since the exporter started", unit: "none", empty: "No SXid is counted on this node",
			about:   "Faults that the switches' driver reported, by number. docs/health.md lists which of them stop work.",
			queries: []query{{expr: keep(named(ofSwitches, `accel_nvswitch_sxid_errors_total{`+inNode+`}`), "name, sxid")}},
			columns: []column{{of: "name", title: "Switch"}, {of: "sxid", title: "SXid", width: 90}, {of: "A", title: "Times", sort: true, width: 80}},
		}),
		half(panel{
			kind: timeline, title: "Reset required", unit: "none", states: yesBad, empty: noSwitches,
			about:   "Whether the switch requires a reset. All GPUs behind it must be free for that.",
			queries: []query{perName(ofSwitches, `accel_nvswitch_reset_required{`+inNode+`}`)},
		}),
	}
}

func nodeCPUs() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Use of Grace CPUs", unit: "percentunit", min: f(0), max: f(1), empty: noCPUs,
			about:   "Share of time in which the cores of the CPU were busy.",
			queries: []query{perKind(ofCPUs, `accel_cpu_utilization_ratio{`+inNode+`}`)},
		}),
		third(panel{
			kind: lines, title: "Power of Grace CPUs", unit: "watt", min: f(0), dashed: "limit", empty: noCPUs,
			about:   "Power drawn; dashed, the limit at which the CPU lowers its clocks.",
			queries: []query{perName(ofCPUs, `accel_power_watts{`+inNode+`}`), {`min by (limit) (` + named(ofCPUs, `accel_power_limit_watts{`+inNode+`}`) + `)`, "limit {{limit}}"}},
		}),
		third(panel{
			kind: lines, title: "Temperature of Grace CPUs", unit: "celsius", dashed: "limit", empty: noCPUs,
			about:   "Temperature of each CPU; dashed, where it warns and where it slows down.",
			queries: []query{perName(ofCPUs, `accel_temperature_celsius{sensor="cpu",`+inNode+`}`), {`min by (limit) (accel_temperature_limit_celsius{sensor="cpu",` + inNode + `})`, "limit {{limit}}"}},
		}),
	}
}

func nodeDCGM() []panel {
	return []panel{
		half(panel{
			kind: timeline, title: "DCGM's health check", unit: "none", states: watchStates, empty: noDCGM,
			about:   "The worst of DCGM's health watches on each device. It does not change the verdict above.",
			queries: []query{perName(inNode, `max by (`+target+`, device) `+watchOf(inNode))},
		}),
		half(panel{
			kind: listing, title: "Watches that did not pass", unit: "none", empty: "Every watch passes, or DCGM is not used",
			about:   "Which of DCGM's health watches warn or fail, and on which device.",
			queries: []query{{expr: keep(host(named(inNode, `max by (`+target+`, device, watch) `+watchOf(inNode)+` > 0`)), "host, name, device, watch")}},
			columns: []column{nameColumn, {of: "watch", title: "Watch"}, {of: "A", title: "State", states: watchStates, width: 90}},
		}),
	}
}

func deviceDCGM() []panel {
	return []panel{
		third(panel{
			kind: timeline, title: "DCGM's health watches", unit: "none", states: watchStates, empty: noDCGM,
			about:   "Result of DCGM's health check of the device, by watch." + onBoard,
			queries: []query{{`max by (watch) ` + watchOf(ofBox), "{{watch}}"}},
		}),
		third(panel{
			kind: listing, title: "Fields of DCGM", unit: "none", empty: "No field is configured",
			about:   "Values of the fields in sources.dcgm.fields and --dcgm.fields, in DCGM's units.",
			queries: []query{{expr: `max by (field, entity, unit) (accel_dcgm_field_value{` + inBox + `} or accel_dcgm_field_total{` + inBox + `})`}},
			columns: []column{{of: "field", title: "Field"}, {of: "entity", title: "Part", width: 80}, {of: "A", title: "Value", width: 110}, {of: "unit", title: "Unit", width: 100}},
		}),
		third(panel{
			kind: lines, title: "Time of the CPU", unit: "percentunit", min: f(0), stacked: true, empty: "No Grace CPU",
			about:   "Share of time that the CPU spent in each mode, over all of its cores.",
			queries: []query{{`max by (mode) (accel_cpu_utilization_ratio{` + inBox + `})`, "{{mode}}"}},
		}),
	}
}

// dcgm shows whether DCGM delivers what is configured.
func exporterDCGM() []panel {
	return []panel{
		third(panel{
			kind: listing, title: "DCGM", unit: "none", empty: noDCGM,
			about:   "Mode of the connection to DCGM, and its versions. A host engine older than the library answers with fewer fields.",
			queries: []query{{expr: `count by (mode, version, host_engine_version) (accel_dcgm_info{` + inPool + `})`}},
			columns: []column{{of: "mode", title: "Mode"}, {of: "version", title: "Library"}, {of: "host_engine_version", title: "Host engine"}, {of: "A", title: "Nodes", sort: true, width: 75}},
		}),
		third(panel{
			kind: lines, title: "GPUs without profiling counters", unit: "none", stacked: true, min: f(0), empty: "All GPUs deliver profiling counters, or profiling is off",
			about:   "GPUs for which DCGM does not deliver profiling counters, by reason. in_use: another profiler uses them.",
			queries: []query{{`count by (reason) (accel_dcgm_profiling_up{` + inPool + `} == 0)`, "{{reason}}"}},
		}),
		third(panel{
			kind: listing, title: "Fields that are not available", unit: "none", empty: "All fields are available, or none is configured",
			about:   "Configured DCGM fields that some devices do not have.",
			queries: []query{{expr: `sum by (field, reason) (accel_dcgm_fields_skipped_devices{` + inPool + `})`}},
			columns: []column{{of: "field", title: "Field"}, {of: "reason", title: "Reason"}, {of: "A", title: "Devices", sort: true, width: 80}},
		}),
	}
}
