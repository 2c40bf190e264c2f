package main

// exporter shows whether the exporter sees all hardware, which versions run where, and
// what accel-remediator did.
func exporter() board {
	return board{
		uid: "accel-exporter", title: "Accelerators / Exporter and rollout", from: "now-6h",
		about:     "The exporter: what it cannot see, the age of its data, what it dropped, its cost. The rollout of drivers, firmware, MIG layouts and FPGA designs. What accel-remediator did, left alone, and whether it works.",
		variables: []variable{datasource, cluster, pool, jobs},
		events: []event{alerts(`alertname=~"Accel[A-Z].*",`+onPools, notElsewhere), {
			name: "Driver changes", colour: blue,
			expr:  `count by (cluster, pool, version) (accel_driver_info{version!="",` + inPool + `} unless on (` + target + `, version) accel_driver_info{` + inPool + `} offset 1m and on (` + target + `) accel_driver_info{` + inPool + `} offset 1m)`,
			title: "Driver {{version}}", text: "{{cluster}} {{pool}}",
		}},
		rows: []row{
			{title: "Does the exporter see everything?", panels: exporterNow()},
			{title: "What is missing", panels: []panel{exporterSources(), exporterDown(), exporterRefused()}},
			{title: "Which versions run where?", panels: rollout()},
			{title: "What does accel-remediator do?", panels: append(remediationNow(), nodesOut(), withheldNow(), remediationActions(), remediationWorks())},
			{title: "Rounds, pods and rules", folded: true, panels: exporterRounds()},
			{title: "Cost of the exporter", folded: true, panels: exporterCost()},
		},
	}
}

func ofJobs(family string) string {
	return family + `{job=~"$job",` + inPool + `}`
}

const noExporter = "No exporter is scraped"

var silentSources = `accel_source_up{reason!~"|absent",` + inPool + `} == 0`

func exporterNow() []panel {
	return tiles(
		panel{
			title: "Exporters down", scale: bad(1), empty: noExporter,
			about:   "Exporters that could not be scraped; the state of the devices of their nodes is unknown. AccelExporterDown. Listed below.",
			queries: count(ofJobs("up")+` == 0`, ofJobs("up")),
		},
		panel{
			title: "Silent sources", scale: bad(1), empty: noExporter,
			about:   "Sources that do not answer although their hardware or driver is present, or that were released. AccelSourceBlind. Listed below.",
			queries: count(silentSources, `accel_source_up{`+inPool+`}`),
		},
		panel{
			title: "Oldest answer", unit: "s", empty: noExporter,
			about:   "Time since the last answer of the source that is furthest behind. AccelSourceBlind fires where it is red.",
			scale:   scale{green, []step{{60, orange}, {300, red}}},
			queries: []query{{expr: `max(accel_source_age_seconds{` + inPool + `} and on (` + target + `, source) (accel_source_stuck == 1 or accel_source_up{reason=""} == 1))`}},
		},
		panel{
			title: "Crashes of workers", decimals: f(0), scale: scale{green, []step{{0.5, orange}, {2.5, red}}}, empty: "No worker is counted",
			about:   "Unexpected exits of the worker process within the last hour, of the exporter with most. Each only delays data; AccelSourceUnstable fires where one exporter has three.",
			queries: []query{{expr: `max(increase(sum by (` + target + `, source) (accel_source_worker_exits_total{` + inPool + `})[1h:2m]))`}},
		},
		panel{
			title: "Configurations rejected", scale: upFrom(1, orange), empty: "No configuration file",
			about:   "Exporters that run with an older configuration than their file. AccelConfigRefused.",
			queries: count(`accel_config_last_reload_successful{`+inPool+`} == 0`, `accel_config_last_reload_successful{`+inPool+`}`),
		},
	)
}

func exporterSources() panel {
	down := `label_replace(label_replace(` + ofJobs("up") + ` == 0, "source", "all", "", ""), "reason", "the exporter is down", "", "")`
	return half(panel{
		kind: listing, title: "Exporters and sources that are silent", empty: "Every source answers or has no hardware, or no exporter is scraped",
		about:   "Exporters that are down, and why each source does not answer. released: the hardware was closed on request.",
		queries: []query{{expr: keep(host(silentSources+` or `+down), "host, source, reason")}},
		columns: []column{nodeColumn.wide(90), {of: "source", title: "Source", width: 80}, {of: "reason", title: "Reason"}},
	})
}

func exporterDown() panel {
	return half(panel{
		kind: listing, title: "Devices that do not answer", empty: "Every device answers, or no exporter is scraped",
		about:   "Devices that did not answer in their source's last round, and why.",
		queries: []query{onDevices(inPool, `max by (`+target+`, device, reason) (accel_device_up{`+inPool+`} == 0)`, "reason")},
		columns: []column{nodeColumn.wide(90), nameColumn.wide(90), {of: "reason", title: "Reason"}},
	})
}

func exporterRefused() panel {
	return panel{
		kind: listing, title: "Refused calls", width: 24, height: 7, empty: "The driver refuses no call, or no exporter is scraped",
		about:   "Calls that the driver refuses for a device, mostly for lack of a privilege. The log and docs/privileges.md name what is missing and what permits it.",
		queries: []query{onDevices(inPool, `max by (`+target+`, device, call, code) (accel_device_call_refused{`+inPool+`})`, "call, code")},
		columns: []column{nodeColumn, nameColumn, {of: "call", title: "Call"}, {of: "code", title: "Code"}},
	}
}

func exporterRounds() []panel {
	return []panel{
		half(panel{
			kind: lines, title: "Failed and partial rounds", unit: "percentunit", min: f(0), empty: "Every round is complete, or no exporter is scraped",
			about:   "Share of rounds by source and outcome. partial: answered, with values missing.",
			queries: []query{{`sum by (source, outcome) (rate(accel_source_rounds_total{outcome!="ok",` + inPool + `}[$__rate_interval])) / on (source) group_left () (sum by (source) (rate(accel_source_rounds_total{` + inPool + `}[$__rate_interval])) > 0)`, "{{source}} {{outcome}}"}},
		}),
		half(panel{
			kind: bars, title: "Lost reports and dropped series", stacked: true, min: f(0), empty: noExporter,
			about: "Records of the kernel log that were overwritten before they were read or could not be parsed, events that belong to no device, and series that are not on the page: a fault may be missing, and alerts cannot fire. AccelFaultReportsLost, AccelSeriesDropped.",
			queries: []query{
				{`sum(` + grew(`accel_kernel_log_lost_records_total{`+inPool+`}`) + `)`, "overwritten"},
				{`sum(` + grew(`accel_kernel_log_malformed_lines_total{`+inPool+`}`) + `)`, "not understood"},
				{`sum(` + grew(`accel_source_events_lost_total{`+inPool+`}`) + `)`, "of no device"},
				{`sum(` + grew(`accel_exporter_series_dropped_total{`+inPool+`}`) + `)`, "series"},
			},
		}),
		half(panel{
			kind: lines, title: "State of the list of allocations", stacked: true, min: f(0), empty: noExporter,
			about:   "Nodes by state of the list from the kubelet. stale and unreachable: alerts may name no pod. AccelPodsUnknown.",
			queries: []query{{`sum by (state) (accel_podmap_state{` + inPool + `}) > 0`, "{{state}}"}},
			colours: []state{{value: "fresh", colour: green}, {value: "absent", colour: blue}, {value: "unconfirmed", colour: yellow}, {value: "stale", colour: orange}, {value: "unreachable", colour: red}},
		}),
		half(panel{
			kind: bars, title: "Failures of rules and alerts on the node", stacked: true, min: f(0), empty: "No exporter evaluates rules itself; see --alertmanager.url",
			about: "Of exporters that evaluate rules themselves: failed evaluations, requests to Alertmanager that failed, of which the alerts wait and are sent later, and alerts that were dropped, by reason; expired and shutdown are normal.",
			queries: []query{
				{`sum(` + grew(`accel_rules_evaluation_failures_total{`+inPool+`}`) + `)`, "evaluations"},
				{`sum by (reason) (` + grew(`accel_alertmanager_request_failures_total{`+inPool+`}`) + `)`, "requests: {{reason}}"},
				{`sum by (reason) (` + grew(`accel_alertmanager_alerts_dropped_total{`+inPool+`}`) + `)`, "dropped: {{reason}}"},
			},
		}),
	}
}

func exporterCost() []panel {
	most := func(expr string) []query { return []query{{host(`topk(3, ` + expr + `)`), "{{cluster}} {{host}}"}} }
	return []panel{
		half(panel{
			kind: lines, title: "CPU", unit: "percentunit", min: f(0), empty: noExporter,
			about:   "Share of one core that the exporter uses, for the three highest. Its worker process is not counted.",
			queries: most(`rate(` + ofJobs("process_cpu_seconds_total") + `[$__rate_interval])`),
		}),
		half(panel{
			kind: lines, title: "Memory", unit: "bytes", min: f(0), empty: noExporter,
			about:   "Resident memory of the exporter, for the three highest. Its worker process is not counted.",
			queries: most(ofJobs("process_resident_memory_bytes")),
		}),
	}
}
