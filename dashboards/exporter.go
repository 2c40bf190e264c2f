package main

// exporter answers: does the exporter see what it ought to.
func exporter(v *values) board {
	e := exporters{v.string("exporter_job"), v}
	return board{
		uid: "accel-exporter", title: "Accelerators / Exporter", from: "now-6h",
		about:     "The exporter's own health: what it cannot see, how old its answers are, what it left out and what it costs.",
		variables: []variable{datasource, cluster, pool},
		events:    []event{alerts(`alertname=~"Accel[A-Z].*",` + inPool)},
		rows: []row{
			{title: "Does it see what it ought to?", panels: e.now()},
			{title: "What is not seen", panels: []panel{e.sources(), e.down(), e.rejected()}},
			{title: "Sources", panels: e.rounds()},
			{title: "Pods", panels: e.pods()},
			{title: "Rules and alerts from the node", folded: true, panels: e.rules()},
			{title: "DCGM", folded: true, panels: e.dcgm()},
			{title: "What it costs", panels: e.cost()},
		},
	}
}

// exporters is the jobs that scrape exporters, as a regular expression.
type exporters struct {
	jobs string
	*values
}

func (e exporters) of(family string) string {
	return family + `{job=~"` + e.jobs + `",` + inPool + `}`
}

const noExporter = "No exporter is scraped"

func (e exporters) now() []panel {
	all := `count(` + e.of("up") + `)`
	return []panel{
		tile(panel{
			kind: number, title: "Exporters down", unit: "none", scale: bad(1), empty: noExporter,
			about:   "Exporters that could not be scraped; nothing is known of the devices of their nodes. AccelExporterDown.",
			queries: []query{{expr: `sum(1 - ` + e.of("up") + `)`}},
		}),
		tile(panel{
			kind: number, title: "Blind sources", unit: "none", scale: bad(1), empty: noExporter,
			about:   "Sources that do not answer although their hardware or driver is there. AccelSourceBlind.",
			queries: []query{{expr: zeroWhere(`count(accel_source_up{reason!~"|absent|released|starting",`+inPool+`} == 0)`, all)}},
		}),
		tile(panel{
			kind: number, title: "Oldest answer", unit: "s", empty: noExporter,
			about:   "How long ago the source that is furthest behind has answered. AccelSourceStale fires where it is red.",
			scale:   scale{green, []step{{60, orange}, {e.number("source_age_seconds"), red}}},
			queries: []query{{expr: `max(time() - accel_source_last_success_timestamp_seconds{` + inPool + `} and on (` + target + `, source) (accel_source_stuck == 1 or accel_source_up{reason=""} == 1))`}},
		}),
		tile(panel{
			kind: number, title: "Crashes of workers", unit: "none", decimals: f(0), scale: scale{green, []step{{0.5, orange}, {e.number("worker_exits_an_hour") - 0.5, red}}}, empty: noExporter,
			about:   "Ends of the process with the native library within the last hour that nobody asked for. Each costs freshness only; AccelWorkerCrashing fires where one exporter has several.",
			queries: []query{{expr: zeroWhere(`max(sum by (`+target+`, source) (increase(accel_source_worker_exits_total{`+inPool+`}[1h])))`, all)}},
		}),
		tile(panel{
			kind: number, title: "Configurations refused", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noExporter,
			about:   "Exporters that run with an older configuration than their file's. AccelConfigRefused.",
			queries: []query{{expr: zeroWhere(`count(accel_config_last_reload_successful{`+inPool+`} == 0)`, all)}},
		}),
		tile(panel{
			kind: number, title: "Versions", unit: "none", scale: scale{blue, []step{{2, yellow}}}, empty: noExporter,
			about:   "Versions of the exporter that run. More than one is a rollout.",
			queries: []query{{expr: `count(count by (version) (accel_exporter_build_info{` + inPool + `}))`}},
		}),
	}
}

func (e exporters) sources() panel {
	return third(panel{
		kind: listing, title: "Sources that do not answer", unit: "none", empty: "Every source answers, or has nothing to answer for",
		about:   "Why each source does not answer. released: somebody told it to close the hardware.",
		queries: []query{{expr: keep(host(`accel_source_up{reason!~"|absent",`+inPool+`} == 0`), "host, source, reason")}},
		columns: []column{nodeColumn, {of: "source", title: "Source"}, {of: "reason", title: "Reason"}, {of: "A", title: "Answers", hidden: true}},
	})
}

func (e exporters) down() panel {
	return third(panel{
		kind: listing, title: "Devices that do not answer", unit: "none", empty: "Every device answers",
		about:   "Devices that did not answer in their source's last round, and why.",
		queries: []query{{expr: keep(host(named(inPool, `max by (`+target+`, device, reason) (accel_device_up{`+inPool+`} == 0)`)), "host, name, device, reason")}},
		columns: []column{nodeColumn, nameColumn, {of: "reason", title: "Reason"}, idColumn, {of: "A", title: "Answers", hidden: true}},
	})
}

func (e exporters) rejected() panel {
	return third(panel{
		kind: listing, title: "Values that are no measurement", unit: "none", empty: "Every answer was a measurement",
		about:   "Answers of devices that were left out in the time range, by family: impossible numbers, the driver's marks for not available.",
		queries: []query{{expr: `topk(20, sum by (family, reason) (increase(accel_source_rejected_values_total{` + inPool + `}[$__range])) > 0)`}},
		columns: []column{{of: "family", title: "Family"}, {of: "reason", title: "Reason"}, {of: "A", title: "Times", sort: true, width: 90}},
	})
}

func (e exporters) rounds() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "How long a round takes", unit: "s", min: f(0), empty: noExporter,
			about:   "The slowest node's last round of each source. Beyond the interval of sampling, values are older than they seem.",
			queries: []query{{`max by (source) (accel_source_round_duration_seconds{` + inPool + `})`, "{{source}}"}},
		}),
		third(panel{
			kind: lines, title: "Rounds that failed or lacked something", unit: "percentunit", min: f(0), empty: noExporter,
			about:   "Share of rounds by source and outcome. partial: answered, and something was missing.",
			queries: []query{{`sum by (source, outcome) (rate(accel_source_rounds_total{outcome!="ok",` + inPool + `}[$__rate_interval])) / on (source) group_left () sum by (source) (rate(accel_source_rounds_total{` + inPool + `}[$__rate_interval]))`, "{{source}} {{outcome}}"}},
		}),
		third(panel{
			kind: lines, title: "Errors of native calls", unit: "ops", min: f(0), stacked: true, empty: "No call fails but with not_supported",
			about:   "Answers of a native library other than success and not_supported, by code.",
			queries: []query{{`sum by (source, code) (instance_code:accel_native_call_errors:rate5m{` + inPool + `})`, "{{source}} {{code}}"}},
		}),
		half(panel{
			kind: bars, title: "Reports of faults that were lost", unit: "none", stacked: true, min: f(0), empty: noExporter,
			about: "Records of the kernel log that were overwritten unread or not understood, and events that belong to no device. A fault may be missing. AccelFaultReportsLost.",
			queries: []query{
				{`sum(increase(accel_kernel_log_lost_records_total{` + inPool + `}[$__rate_interval]))`, "overwritten"},
				{`sum(increase(accel_kernel_log_malformed_lines_total{` + inPool + `}[$__rate_interval]))`, "not understood"},
				{`sum(increase(accel_source_events_lost_total{` + inPool + `}[$__rate_interval]))`, "of no device"},
			},
		}),
		half(panel{
			kind: bars, title: "Series left off the page", unit: "none", stacked: true, min: f(0), empty: noExporter,
			about:   "Series that a snapshot had and the page has not, by reason. limit and invalid are bad: alerts on them cannot fire. AccelSeriesDropped.",
			queries: []query{{`sum by (reason) (increase(accel_exporter_series_dropped_total{` + inPool + `}[$__rate_interval]))`, "{{reason}}"}},
		}),
	}
}

func (e exporters) pods() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "What the list of holders is worth", unit: "none", stacked: true, min: f(0), empty: noExporter,
			about:   "Nodes by state of the list of the kubelet. stale and unreachable: alerts may name no pod. AccelPodmapStale.",
			queries: []query{{`sum by (state) (accel_podmap_state{` + inPool + `}) > 0`, "{{state}}"}},
			colours: []state{{value: "fresh", colour: green}, {value: "absent", colour: blue}, {value: "unconfirmed", colour: yellow}, {value: "stale", colour: orange}, {value: "unreachable", colour: red}},
		}),
		third(panel{
			kind: lines, title: "Calls of the kubelet", unit: "ops", min: f(0), stacked: true, empty: noExporter,
			about:   "Calls per second by how they ended.",
			queries: []query{{`sum by (outcome) (rate(accel_podmap_calls_total{` + inPool + `}[$__rate_interval])) > 0`, "{{outcome}}"}},
		}),
		third(panel{
			kind: lines, title: "Device ids that were not found", unit: "none", min: f(0), stacked: true, empty: "No kubelet answers, or every id is found",
			about:   "Ids of the kubelet that name no device, several, or have an unknown form: their holders are not known. docs/podmap.md tells how to name them.",
			queries: []query{{`sum by (how) (accel_podmap_ids{how=~"none|ambiguous|unknown",` + inPool + `})`, "{{how}}"}},
		}),
	}
}

// rules is about exporters that evaluate rules themselves.
func (e exporters) rules() []panel {
	const noEngine = "No exporter evaluates rules itself, which begins with --alertmanager.url or --rules.file"
	return []panel{
		quarter(panel{
			kind: bars, title: "Failed rule evaluations", unit: "none", stacked: true, min: f(0), empty: noEngine,
			about:   "Rule evaluations that failed, by group. The alerts of a failing rule keep their state. The exporter's log and /debug/rules show the error.",
			queries: []query{{`sum by (group) (increase(accel_rules_evaluation_failures_total{` + inPool + `}[$__rate_interval]))`, "{{group}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Time of an evaluation", unit: "s", min: f(0), empty: noEngine,
			about:   "The slowest node's last evaluation of its rules. Near the interval of evaluation, alerts come late.",
			queries: []query{{`max(accel_rules_last_evaluation_duration_seconds{` + inPool + `})`, "slowest"}},
		}),
		quarter(panel{
			kind: bars, title: "Requests to Alertmanager that failed", unit: "none", stacked: true, min: f(0), empty: noEngine,
			about:   "By reason. Alerts wait meanwhile and are told later, as long as there is room.",
			queries: []query{{`sum by (reason) (increase(accel_alertmanager_request_failures_total{` + inPool + `}[$__rate_interval]))`, "{{reason}}"}},
		}),
		quarter(panel{
			kind: bars, title: "Alerts that were not told", unit: "none", stacked: true, min: f(0), empty: noEngine,
			about:   "By reason. Any but expired and shutdown means that somebody was not told of a fault.",
			queries: []query{{`sum by (reason) (increase(accel_alertmanager_alerts_dropped_total{` + inPool + `}[$__rate_interval]))`, "{{reason}}"}},
		}),
	}
}

func (e exporters) cost() []panel {
	return []panel{
		quarter(panel{
			kind: lines, title: "CPU", unit: "percentunit", min: f(0), empty: noExporter,
			about:   "Share of one core that the exporter takes, of the three that take most. Its worker process is not counted.",
			queries: []query{{host(`topk(3, rate(` + e.of("process_cpu_seconds_total") + `[$__rate_interval]))`), "{{host}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Memory", unit: "bytes", min: f(0), empty: noExporter,
			about:   "Resident memory of the exporter, of the three that have most. Its worker process is not counted.",
			queries: []query{{host(`topk(3, ` + e.of("process_resident_memory_bytes") + `)`), "{{host}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Time of a scrape", unit: "s", min: f(0), empty: noExporter,
			about:   "How long scrapes take, of the three that take longest. A scrape never waits for a device, so longer than a second is the network or a starved node.",
			queries: []query{{host(`topk(3, ` + e.of("scrape_duration_seconds") + `)`), "{{host}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Series per scrape", unit: "none", min: f(0), empty: noExporter,
			about:   "Series that a scrape brings, of the three largest. A jump is a new kind of device, or labels that run away.",
			queries: []query{{host(`topk(3, ` + e.of("scrape_samples_scraped") + `)`), "{{host}}"}},
		}),
	}
}
