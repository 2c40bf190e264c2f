package main

// exporter shows whether the exporter sees all hardware.
func exporter() board {
	return board{
		uid: "accel-exporter", title: "Accelerators / Exporter", from: "now-6h",
		about:     "The health of the exporter: what it cannot see, the age of its data, what it dropped, and its cost.",
		variables: []variable{datasource, cluster, pool, jobs},
		events:    []event{alerts(`alertname=~"Accel[A-Z].*",`+onPools, notElsewhere)},
		rows: []row{
			{title: "Does it see everything?", panels: exporterNow()},
			{title: "What is missing", panels: []panel{exporterSources(), exporterDown(), exporterRejected(), exporterRefused()}},
			{title: "Sources", panels: exporterRounds()},
			{title: "Pods", panels: exporterPods()},
			{title: "Rules and alerts from the node", folded: true, panels: exporterRules()},
			{title: "DCGM", folded: true, panels: exporterDCGM()},
			{title: "Cost of the exporter", panels: exporterCost()},
		},
	}
}

func ofJobs(family string) string {
	return family + `{job=~"$job",` + inPool + `}`
}

const noExporter = "No exporter is scraped"

func exporterNow() []panel {
	all := `count(` + ofJobs("up") + `)`
	return []panel{
		tile(panel{
			kind: number, title: "Exporters down", unit: "none", scale: bad(1), empty: noExporter,
			about:   "Exporters that could not be scraped; the state of the devices of their nodes is unknown. AccelExporterDown.",
			queries: []query{{expr: `sum(1 - ` + ofJobs("up") + `)`}},
		}),
		tile(panel{
			kind: number, title: "Blind sources", unit: "none", scale: bad(1), empty: noExporter,
			about:   "Sources that do not answer although their hardware or driver is present. AccelSourceBlind.",
			queries: []query{{expr: zeroWhere(`count(accel_source_up{reason!~"|absent|released|starting",`+inPool+`} == 0)`, all)}},
		}),
		tile(panel{
			kind: number, title: "Oldest answer", unit: "s", empty: noExporter,
			about:   "Time since the last answer of the source that is furthest behind. AccelSourceBlind fires where it is red.",
			scale:   scale{green, []step{{60, orange}, {300, red}}},
			queries: []query{{expr: `max(accel_source_age_seconds{` + inPool + `} and on (` + target + `, source) (accel_source_stuck == 1 or accel_source_up{reason=""} == 1))`}},
		}),
		tile(panel{
			kind: number, title: "Crashes of workers", unit: "none", decimals: f(0), scale: scale{green, []step{{0.5, orange}, {2.5, red}}}, empty: noExporter,
			about:   "Unexpected exits of the worker process within the last hour. Each only delays data; AccelSourceUnstable fires where one exporter has three.",
			queries: []query{{expr: zeroWhere(`max(sum by (`+target+`, source) (increase(accel_source_worker_exits_total{`+inPool+`}[1h])))`, all)}},
		}),
		tile(panel{
			kind: number, title: "Configurations rejected", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noExporter,
			about:   "Exporters that run with an older configuration than their file. AccelConfigRefused.",
			queries: []query{{expr: zeroWhere(`count(accel_config_last_reload_successful{`+inPool+`} == 0)`, all)}},
		}),
		tile(panel{
			kind: number, title: "Versions", unit: "none", scale: scale{blue, []step{{2, yellow}}}, empty: noExporter,
			about:   "Versions of the exporter that run. More than one is a rollout.",
			queries: []query{{expr: `count(count by (version) (accel_exporter_build_info{` + inPool + `}))`}},
		}),
	}
}

func exporterSources() panel {
	return third(panel{
		kind: listing, title: "Sources that do not answer", unit: "none", empty: "Every source answers or has no hardware, or no exporter is scraped",
		about:   "Why each source does not answer. released: the hardware was closed on request.",
		queries: []query{{expr: keep(host(`accel_source_up{reason!~"|absent",`+inPool+`} == 0`), "host, source, reason")}},
		columns: []column{nodeColumn, {of: "source", title: "Source"}, {of: "reason", title: "Reason"}},
	})
}

func exporterDown() panel {
	return third(panel{
		kind: listing, title: "Devices that do not answer", unit: "none", empty: "Every device answers, or no exporter is scraped",
		about:   "Devices that did not answer in their source's last round, and why.",
		queries: []query{{expr: keep(host(named(inPool, `max by (`+target+`, device, reason) (accel_device_up{`+inPool+`} == 0)`)), "host, name, device, reason")}},
		columns: []column{nodeColumn, nameColumn, {of: "reason", title: "Reason"}},
	})
}

func exporterRefused() panel {
	return whole(panel{
		kind: listing, title: "Refused calls", unit: "none", empty: "The driver refuses no call, or no exporter is scraped",
		about:   "Calls that the driver refuses for a device, mostly for lack of a privilege. The log and docs/privileges.md name what is missing and what permits it.",
		queries: []query{{expr: keep(host(named(inPool, `max by (`+target+`, device, call, code) (accel_device_call_refused{`+inPool+`})`)), "host, name, device, call, code")}},
		columns: []column{nodeColumn, nameColumn, {of: "call", title: "Call"}, {of: "code", title: "Code"}},
	})
}

func exporterRejected() panel {
	return third(panel{
		kind: listing, title: "Rejected values", unit: "none", empty: "No value was rejected, or no exporter is scraped",
		about:   "Values that were dropped in the time range, by family: impossible numbers, and the driver's marks for not available.",
		queries: []query{{expr: `topk(20, round(sum by (family, reason) (increase(accel_source_rejected_values_total{` + inPool + `}[$__range]))) > 0)`}},
		columns: []column{{of: "family", title: "Family"}, {of: "reason", title: "Reason"}, {of: "A", title: "Times", sort: true, width: 90}},
	})
}

func exporterRounds() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Duration of a round", unit: "s", min: f(0), empty: noExporter,
			about:   "Last round of each source on the slowest node. Above the sampling interval, values are older than they seem.",
			queries: []query{{`max by (source) (accel_source_round_duration_seconds{` + inPool + `})`, "{{source}}"}},
		}),
		third(panel{
			kind: lines, title: "Failed and partial rounds", unit: "percentunit", min: f(0), empty: noExporter,
			about:   "Share of rounds by source and outcome. partial: answered, with values missing.",
			queries: []query{{`sum by (source, outcome) (rate(accel_source_rounds_total{outcome!="ok",` + inPool + `}[$__rate_interval])) / on (source) group_left () (sum by (source) (rate(accel_source_rounds_total{` + inPool + `}[$__rate_interval])) > 0)`, "{{source}} {{outcome}}"}},
		}),
		third(panel{
			kind: lines, title: "Errors of native calls", unit: "ops", min: f(0), stacked: true, empty: "No call fails, except with not_supported",
			about:   "Return codes of a native library other than success and not_supported.",
			queries: []query{{`sum by (source, code) (rate(accel_native_call_errors_total{code!="not_supported",` + inPool + `}[$__rate_interval])) > 0`, "{{source}} {{code}}"}},
		}),
		half(panel{
			kind: bars, title: "Lost fault reports", unit: "none", stacked: true, min: f(0), empty: noExporter,
			about: "Records of the kernel log that were overwritten before they were read or could not be parsed, and events that belong to no device. A fault may be missing. AccelFaultReportsLost.",
			queries: []query{
				{`sum(` + grew(`accel_kernel_log_lost_records_total{`+inPool+`}`) + `)`, "overwritten"},
				{`sum(` + grew(`accel_kernel_log_malformed_lines_total{`+inPool+`}`) + `)`, "not understood"},
				{`sum(` + grew(`accel_source_events_lost_total{`+inPool+`}`) + `)`, "of no device"},
			},
		}),
		half(panel{
			kind: bars, title: "Dropped series", unit: "none", stacked: true, min: f(0), empty: noExporter,
			about:   "Series of a snapshot that are not on the page, by reason. limit and invalid are bad: alerts on them cannot fire. AccelSeriesDropped.",
			queries: []query{{`sum by (reason) (` + grew(`accel_exporter_series_dropped_total{`+inPool+`}`) + `)`, "{{reason}}"}},
		}),
	}
}

func exporterPods() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "State of the list of allocations", unit: "none", stacked: true, min: f(0), empty: noExporter,
			about:   "Nodes by state of the list from the kubelet. stale and unreachable: alerts may name no pod. AccelPodsUnknown.",
			queries: []query{{`sum by (state) (accel_podmap_state{` + inPool + `}) > 0`, "{{state}}"}},
			colours: []state{{value: "fresh", colour: green}, {value: "absent", colour: blue}, {value: "unconfirmed", colour: yellow}, {value: "stale", colour: orange}, {value: "unreachable", colour: red}},
		}),
		third(panel{
			kind: lines, title: "Requests to the kubelet", unit: "ops", min: f(0), stacked: true, empty: noExporter,
			about:   "Requests per second by outcome.",
			queries: []query{{`sum by (outcome) (rate(accel_podmap_calls_total{` + inPool + `}[$__rate_interval])) > 0`, "{{outcome}}"}},
		}),
		third(panel{
			kind: lines, title: "Device ids that were not found", unit: "none", min: f(0), stacked: true, empty: "No kubelet answers, or every id is found",
			about:   "Ids of the kubelet that name no device, several, or have an unknown form: their pods are unknown. docs/podmap.md describes how to name them.",
			queries: []query{{`sum by (how) (accel_podmap_ids{how=~"none|ambiguous|unknown",` + inPool + `})`, "{{how}}"}},
		}),
	}
}

// rules shows exporters that evaluate rules themselves.
func exporterRules() []panel {
	const noEngine = "No exporter evaluates rules itself; enable it with --alertmanager.url or --rules.file"
	return []panel{
		quarter(panel{
			kind: bars, title: "Failed rule evaluations", unit: "none", stacked: true, min: f(0), empty: noEngine,
			about:   "Rule evaluations that failed, by group. The alerts of a failing rule keep their state. The exporter's log and /debug/rules show the error.",
			queries: []query{{`sum by (group) (` + grew(`accel_rules_evaluation_failures_total{`+inPool+`}`) + `)`, "{{group}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Time of an evaluation", unit: "s", min: f(0), empty: noEngine,
			about:   "Last evaluation of the rules on the slowest node. Near the evaluation interval, alerts are late.",
			queries: []query{{`max(accel_rules_last_evaluation_duration_seconds{` + inPool + `})`, "slowest"}},
		}),
		quarter(panel{
			kind: bars, title: "Requests to Alertmanager that failed", unit: "none", stacked: true, min: f(0), empty: noEngine,
			about:   "By reason. Alerts wait and are sent later, while there is room in the queue.",
			queries: []query{{`sum by (reason) (` + grew(`accel_alertmanager_request_failures_total{`+inPool+`}`) + `)`, "{{reason}}"}},
		}),
		quarter(panel{
			kind: bars, title: "Dropped alerts", unit: "none", stacked: true, min: f(0), empty: noEngine,
			about:   "By reason. Any reason other than expired and shutdown means that a notification is missing.",
			queries: []query{{`sum by (reason) (` + grew(`accel_alertmanager_alerts_dropped_total{`+inPool+`}`) + `)`, "{{reason}}"}},
		}),
	}
}

func exporterCost() []panel {
	return []panel{
		quarter(panel{
			kind: lines, title: "CPU", unit: "percentunit", min: f(0), empty: noExporter,
			about:   "Share of one core that the exporter uses, for the three highest. Its worker process is not counted.",
			queries: []query{{host(`topk(3, rate(` + ofJobs("process_cpu_seconds_total") + `[$__rate_interval]))`), "{{cluster}} {{host}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Memory", unit: "bytes", min: f(0), empty: noExporter,
			about:   "Resident memory of the exporter, for the three highest. Its worker process is not counted.",
			queries: []query{{host(`topk(3, ` + ofJobs("process_resident_memory_bytes") + `)`), "{{cluster}} {{host}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Time of a scrape", unit: "s", min: f(0), empty: noExporter,
			about:   "Duration of scrapes, for the three slowest. A scrape never waits for a device, so more than a second points to the network or an overloaded node.",
			queries: []query{{host(`topk(3, ` + ofJobs("scrape_duration_seconds") + `)`), "{{cluster}} {{host}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Series per scrape", unit: "none", min: f(0), empty: noExporter,
			about:   "Series per scrape, for the three largest. A jump is a new kind of device, or a label with too many values.",
			queries: []query{{host(`topk(3, ` + ofJobs("scrape_samples_scraped") + `)`), "{{cluster}} {{host}}"}},
		}),
	}
}
