package main

import "fmt"

// fleet shows whether something is wrong, where, which pods are affected, the free
// capacity, and which nodes are not as approved.
func fleet() board {
	return board{
		uid: "accel-fleet", title: "Accelerators / Fleet", from: "now-6h",
		about:     "Whether something is wrong with the accelerators, where, and which pods are affected; what is allocated, idle and free; which nodes differ from what is approved.",
		variables: []variable{datasource, cluster, pool, jobs},
		events:    []event{alerts(`severity="critical",`+onPools, notElsewhere)},
		rows: []row{
			{title: "Is something wrong?", panels: fleetNow()},
			{title: "Where, and which pods are affected?", panels: []panel{
				whole(incidentsOf(inPool)),
				whole(firingAlerts(firing(`severity!="info",`+onPools) + notElsewhere)),
			}},
			{title: "Nodes", panels: []panel{fleetNodes(), fleetReasons(), fleetXids()}},
			{title: "Capacity", panels: fleetCapacity()},
			{title: "Drift: what is not as approved", panels: []panel{targets(), nodesLeft(), blockers()}},
		},
	}
}

const (
	allWhole      = `parent="",` + inPool
	noDevice      = "No device is known"
	noAllocations = "No kubelet answers"
	noAlertRules  = "No rules loaded"
	noMeasured    = "No use is measured"
	firesOn       = " An alert on a device fires on for 15 minutes after the device is well, so that a repeated fault pages once."
	noBaseline    = "There is no baseline"
	// noRules is the text of what is read from recorded series.
	noRules = "No devices, or the recording rules are not loaded"
)

// The same selections are counted in the first row and listed below.
var (
	unfit       = verdict(allWhole, "failed|unknown")
	notApproved = `accel_drift{` + inPool + `} == 1`
	// freeWhole are the whole devices that can be allocated.
	freeWhole = `accel_device_info{class!="switch",` + allWhole + `} and ` + perDevice + ` accel_device_holders == 0 unless ` + perDevice + ` (` + unfit + `)`
)

func fleetNow() []panel {
	return tiles(
		panel{
			title: "Failed devices", scale: bad(1), empty: noDevice,
			about:   "Whole devices whose verdict is failed or unknown: work on them is lost, or their state cannot be determined. Any is bad.",
			queries: count(unfit, `accel_device_health{`+allWhole+`}`),
		},
		panel{
			title: "Degraded devices", scale: upFrom(1, orange), empty: noDevice,
			about:   "Devices on which work continues although they need attention.",
			queries: count(verdict(allWhole, "degraded"), `accel_device_health{`+allWhole+`}`),
		},
		panel{
			title: "Pods affected", scale: upFrom(1, orange), empty: noAllocations,
			about:   "Pods with a degraded or failed device, or a partition of one. The incidents below name them.",
			queries: count(podsOnSick(inPool), `accel_device_holders{`+inPool+`}`),
		},
		panel{
			title: "Critical alerts", scale: bad(1), empty: noAlertRules,
			about:   "Firing alerts with severity critical: work is lost or about to be. Listed below." + firesOn,
			queries: count(firing(`severity="critical",`+onPools)+notElsewhere, rulesLoaded),
		},
		panel{
			title: "Exporters down", scale: upFrom(1, orange), empty: "No exporter is scraped",
			about:   "Exporters that could not be scraped. The state of the devices of their nodes is unknown. The dashboard of the exporter names them.",
			queries: []query{{expr: `sum(1 - up{job=~"$job",` + inPool + `})`}},
			link:    jumpTo("accel-exporter", "Exporters"),
		},
		panel{
			title: "Not approved", scale: upFrom(1, orange), empty: noBaseline,
			about:   "Nodes with at least one component that neither the baseline nor the resource name of the allocation approves. Listed below.",
			queries: count(`group by (`+target+`) (`+notApproved+`)`, `accel_drift{`+inPool+`}`),
		},
	)
}

// podsOnSick are the pods with a device that is degraded or failed.
func podsOnSick(allocations string) string {
	return `group by (cluster, namespace, pod) (accel_allocation_info{` + allocations + `} and ` + perDevice + ` (` + verdict(inAny, "degraded|failed") + `))`
}

// incidentsOf has a row for each whole device of the selector that is not healthy: the
// exporter's summary, and what it has seen.
func incidentsOf(selector string) panel {
	reported := `accel_device_incident_timestamp_seconds{` + selector + `}`
	silent := `label_replace(` + verdict(`parent="",`+selector, "degraded|failed|unknown") + `, "kind", "$1", "state", "(.+)")`
	silent = `label_replace(` + silent + `, "summary", "Its faults are not observed.", "kind", "unknown")`
	silent = `label_replace(` + silent + `, "summary", "It is not described yet.", "kind", "failed|degraded")`
	return incidentTable(reported + ` or on (` + target + `, device) ` + silent)
}

func incidentTable(rows string) panel {
	for i, s := range incidents {
		rows = fmt.Sprintf(`label_replace(%s, "rank", "%d", "kind", "%s")`, rows, i, s.value)
	}
	// A device without an identity keeps its row.
	rows = named(inAny, rows) + ` or on (` + target + `, device) (` + rows + `)`
	return panel{
		kind: listing, title: "Incidents", empty: "No device is degraded, failed or unobserved, or no health is known",
		about:   "One row for each whole device that is not healthy, the gravest first: what happened, whose work it hurts and what to do; its reasons; pods that have held the device since. docs/health.md explains reasons and actions.",
		queries: []query{{expr: keep(host(rows), "rank, kind, "+rowLabels+", summary, reasons, action, pods, since")}},
		columns: []column{
			{of: "rank", title: "Rank", hidden: true, sortUp: true},
			{of: "kind", title: "State", states: incidents, width: 95},
			nodeColumn.wide(80), nameColumn.wide(105),
			{of: "summary", title: "Incident", jump: toDevice(), wrapped: true},
			{of: "action", title: "Action", jump: toHealth("actions"), width: 90},
			{of: "pods", title: "Pods", width: 150, wrapped: true},
			{of: "reasons", title: "Reasons", jump: toHealth("catalogue"), width: 160, wrapped: true},
			{of: "since", title: "Since", unit: "dateTimeFromNow", width: 150},
		},
	}
}

// firingAlerts lists alerts with what they are about.
func firingAlerts(alerts string) panel {
	const labels = "severity, alertname, cluster, pool, node, instance, device, namespace, workload"
	about := `label_replace((` + alerts + `) * ignoring (alertstate) ALERTS_FOR_STATE, "workload", "$1", "pod", "(.+)")`
	since := `max by (` + labels + `) (` + about + `)`
	// Alerts without a device, or of a forgotten device, have no name.
	named := `(` + since + `) * on (cluster, node, device) group_left (name, board) group by (cluster, node, device, name, board) (` + names(inAny) + `)`
	since = `1000 * (` + named + ` or on (` + labels + `) ` + since + `)`
	for i, s := range severities {
		since = fmt.Sprintf(`label_replace(%s, "rank", "%d", "severity", "%s")`, since, i, s.value)
	}
	return panel{
		kind: listing, title: "Firing alerts", empty: "No alert fires, or the rules are not loaded",
		about:   "Firing alerts and their start, critical ones first; *Fleet* omits severity info. A click on an alert opens its runbook. Alerts that exporters send to Alertmanager directly are not listed: Prometheus must have the rules.",
		queries: []query{{expr: keep(host(since), "rank, severity, alertname, "+rowLabels+", namespace, workload")}},
		columns: []column{
			{of: "rank", title: "Rank", hidden: true, sortUp: true},
			{of: "severity", title: "Severity", states: severities, width: 90},
			{of: "alertname", title: "Alert", jump: toRunbook()},
			nodeColumn, nameColumn, namespaceColumn,
			{of: "workload", title: "Workload or pod"},
			sinceColumn,
		},
	}
}

// fleetNodes is one row for each node, the worst first.
func fleetNodes() panel {
	each := func(reduce, expr string) query {
		return query{expr: scoped(reduce + ` by (cluster, pool, host) (` + host(expr) + `)`)}
	}
	return panel{
		kind: listing, title: "Nodes, the worst first", width: 24, height: 11, empty: noDevice,
		about: "The worst verdict on a whole device, how many are failed or unknown and degraded, the least margin to a slowdown by heat, the share of devices and partitions (a divided device counts by them) that is allocated and its mean use, and whether the exporter is up.",
		queries: []query{
			each("max", healthOf(allWhole)),
			each("count", unfit),
			each("count", verdict(allWhole, "degraded")),
			each("count", `accel_device_info{`+allWhole+`}`),
			each("min", `accel_temperature_margin_celsius{limit="slowdown",`+inPool+`}`),
			each("avg", `accel_device_holders{`+inPool+`} > bool 0`),
			each("avg", `accel_allocation_utilization_ratio{`+inPool+`}`),
			each("max", `up{job=~"$job",`+inPool+`}`),
		},
		columns: []column{
			poolColumn, nodeColumn,
			{of: "A", title: "Worst", states: healthStates, width: 90, sort: true},
			{of: "B", title: "Failed", width: 70, scale: &scale{none, []step{{1, red}}}},
			{of: "C", title: "Degraded", width: 85, scale: &scale{none, []step{{1, orange}}}},
			{of: "D", title: "Devices", width: 75},
			{of: "E", title: "Margin", unit: "celsius", width: 80, scale: &scale{red, []step{{nearLimitCelsius, none}}}},
			{of: "F", title: "Allocated", unit: "percentunit", width: 110, gauge: true},
			{of: "G", title: "Use", unit: "percentunit", width: 110, gauge: true},
			{of: "H", title: "Exporter", states: upStates, width: 80},
		},
	}
}

func fleetReasons() panel {
	return half(panel{
		kind: listing, title: "Devices by reason", empty: "No device is degraded or failed, or no health is known",
		about:   "Whole devices by reason, most first. One device may have several, so the sum may exceed the number of devices.",
		queries: []query{{expr: `count by (cluster, pool, severity, reason) (accel_device_health_reason{` + allWhole + `} == 1)`}},
		columns: []column{
			clusterColumn, poolColumn,
			{of: "reason", title: "Reason", jump: toHealth("catalogue")},
			{of: "severity", title: "Verdict", states: verdicts, width: 90},
			{of: "A", title: "Devices", width: 75, sort: true},
		},
	})
}

func fleetXids() panel {
	return half(panel{
		kind: listing, title: "Xids in the time range", empty: "No GPU has reported an Xid",
		about:   "Last time of each Xid on each GPU, the latest first. Numbers 13, 31, 43 and 69 are usually application errors.",
		queries: []query{onDevices(inPool, `max by (`+target+`, device, xid) (1000 * (accel_gpu_xid_last_timestamp_seconds{`+inPool+`} > time() - $__range_s))`, "xid")},
		columns: []column{{of: "A", title: "Last seen", unit: "dateTimeFromNow", sort: true, width: 130}, {of: "xid", title: "Xid", width: 60}, nodeColumn, nameColumn},
	})
}

func fleetCapacity() []panel {
	idle := fmt.Sprintf(`(min by (%s, device) (accel_allocation_idle_seconds{%s}) > %d)`, target, inPool, idleAfter)
	byModel := func(devices string) query {
		return query{expr: `count by (cluster, pool, class, model) (` + devices + `)`}
	}
	all := `accel_device_info{class!="switch",` + allWhole + `}`
	now := tiles(
		panel{
			title: "Allocated", unit: "percentunit", decimals: f(0), scale: only(blue), empty: noAllocations,
			about:   "Share of the devices and partitions that a pod has. A divided device counts by its partitions.",
			queries: []query{{expr: `avg(accel_device_holders{` + inPool + `} > bool 0)`}},
		},
		panel{
			title: "Idle allocations", scale: upFrom(1, yellow), empty: noMeasured,
			about:   "Allocations on which nothing runs now. *Workload and waste* names their pods.",
			queries: count(idleNow(inPool), `accel_allocation_idle_seconds{`+inPool+`}`),
			link:    jumpTo("accel-workload", "Waste"),
		},
		panel{
			title: "Cost of idleness an hour", decimals: f(2), both: true, scale: only(yellow), empty: noPrices,
			about:   "Cost of the idle time of the last minutes, for an hour and by currency. Needs prices in the exporter's configuration.",
			queries: []query{{`3600 * sum by (currency) (rate(accel_allocation_idle_cost_total{` + inPool + `}[$__rate_interval]))`, "{{currency}}"}},
			link:    jumpTo("accel-workload", "Waste"),
		},
	)
	devices := `sum(pool_model:accel_devices:count{` + inPool + `})`
	allocated := `sum(namespace:accel_allocated_devices:count{` + inPool + `})`
	return append(
		now,
		panel{
			kind: lines, title: "Devices by use", width: 10, height: 9, empty: noRules, min: f(0), dashed: "^all$",
			about: "Whole devices, and allocated and idle devices and partitions on average of five minutes; of a shared device each pod counts as idle.",
			queries: []query{
				{devices, "all"},
				{zeroWhere(allocated, devices+` and on () accel_device_holders{`+inPool+`}`), "allocated"},
				{`sum(namespace:accel_allocation_idle_seconds:rate5m{` + inPool + `})`, "idle"},
			},
			colours: []state{{value: "all", colour: plain}, {value: "allocated", colour: green}, {value: "idle", colour: yellow}},
		},
		panel{
			kind: listing, title: "Devices by pool and model", width: 14, height: 9, empty: noDevice,
			about:   fmt.Sprintf("Whole devices by pool and model. Idle: allocated, and nothing has run for %d minutes or longer. Unfit: failed or unknown, allocated or not. Devices that are divided into partitions are neither allocated nor free. An empty cell means none, or that allocations are not known.", idleAfter/60),
			queries: []query{byModel(all), byModel(all + ` and ` + perDevice + ` (accel_device_holders > 0)`), byModel(all + ` and ` + perDevice + ` ` + idle), byModel(freeWhole), byModel(all + ` and ` + perDevice + ` (` + unfit + `)`)},
			columns: []column{
				clusterColumn, poolColumn,
				{of: "class", title: "Class", width: 70},
				{of: "model", title: "Model"},
				{of: "A", title: "All", width: 60, sort: true},
				{of: "B", title: "Allocated", width: 85},
				{of: "C", title: "Idle", width: 60, scale: &scale{none, []step{{1, yellow}}}},
				{of: "D", title: "Free", width: 60, scale: &scale{none, []step{{1, blue}}}},
				{of: "E", title: "Unfit", width: 60, scale: &scale{none, []step{{1, red}}}},
			},
		},
	)
}

// targets has what the baseline approves, and how far each pool is.
func targets() panel {
	const by = "cluster, pool, component, expected"
	devices := `max by (` + target + `, device, component, expected) (accel_drift{component!~"held/.+",` + inPool + `})`
	return panel{
		kind: listing, title: "Approved by the baseline, and the share of each pool that has it", width: 24, height: 8, empty: noBaseline + ", or no device that it names answers",
		about: "Each approved value of the baseline catalogue, the least complete first. Devices that do not answer are not counted.",
		queries: []query{
			{expr: `1 - avg by (` + by + `) (` + devices + `)`},
			{expr: `sum by (` + by + `) (` + devices + `)`},
			{expr: `count by (` + by + `) (` + devices + `)`},
		},
		columns: []column{
			clusterColumn, poolColumn,
			{of: "component", title: "Component", width: 130},
			{of: "expected", title: "Target"},
			{of: "A", title: "Done", unit: "percentunit", width: 130, sortUp: true, gauge: true},
			{of: "B", title: "Devices left", width: 100, scale: &scale{none, []step{{1, orange}}}},
			{of: "C", title: "Devices", width: 75},
		},
	}
}

// leftOver has a row for each node and component that is not approved, and without a
// baseline for what most nodes of the pool do not run.
func leftOver() string {
	const row = target + ", component, expected, actual"
	g := groupOf(software)
	other := `((` + software + `) unless on (cluster, pool, component) accel_drift{` + inPool + `} and on (` + inGroup + `) ` + g.split + ` unless on (` + inGroup + `, version) (` + g.top + ` unless on (` + inGroup + `) ` + g.tie + `))`
	other = `label_replace(` + other + `, "actual", "$1", "version", "(.+)")`
	return `group by (` + row + `) (max by (` + row + `, device) (` + notApproved + `)` +
		` or label_replace(` + other + ` and on (` + inGroup + `) ` + g.tie + `, "expected", "unknown: no majority", "", "")` +
		` or label_replace(` + other + ` unless on (` + inGroup + `) ` + g.tie + `, "expected", "unknown: most run another", "", ""))`
}

func nodesLeft() panel {
	rows := leftOver()
	of := func(expr string) query {
		return query{expr: keep(host(expr), "pool, host, component, expected, actual")}
	}
	since := `max by (` + target + `, component, expected, actual) (` + notApproved + `) * on (cluster, node, component) group_left () max by (cluster, node, component) (ALERTS_FOR_STATE{alertname="AcceleratorDrift",` + inAny + `})`
	return panel{
		kind: listing, title: "Nodes that are left", width: 14, height: 10, complete: "C", empty: "Every node has what is approved, without a baseline the driver stack that most nodes of its pool have; or no version is known",
		about: "One row for each node and component, most pods first. Approved: by the baseline, or by the resource name of the allocation (held/…). Where no baseline applies, nodes whose driver, CUDA or library differs from that of most nodes of their pool, and on a tie all of them. Since: when AcceleratorDrift began. Pods: those with a device of the node, which a change of it must wait for.",
		queries: []query{
			of(rows),
			of(`1000 * (` + since + `)`),
			of(`(` + rows + `) * on (` + target + `) group_left () (count by (` + target + `) (group by (` + target + `, namespace, pod) (accel_allocation_info{` + inPool + `})) or NaN * group by (` + target + `) (accel_source_up{` + inPool + `}))`),
		},
		columns: []column{
			nodeColumn.wide(90),
			{of: "component", title: "Component", width: 90},
			{of: "actual", title: "Is"},
			{of: "expected", title: "Approved"},
			{of: "B", title: "Since", unit: "dateTimeFromNow", blank: "not known", width: 90},
			{of: "C", title: "Pods", blank: "none", width: 60, sort: true, scale: &scale{none, []step{{1, blue}}}},
			{of: "pool", title: "Pool", width: 60},
		},
	}
}

// blockers are the pods that a change of a node must wait for.
func blockers() panel {
	of := func(expr string) query {
		return query{expr: keep(host(`(`+expr+`) and on (`+target+`) (`+leftOver()+`)`), "host, namespace, pod")}
	}
	return panel{
		kind: listing, title: "Pods on these nodes", width: 10, height: 10, complete: "B", empty: "No pod has a device of a node that is left, or allocations are not known",
		about: "Who blocks the change: each pod with a device of a node that is left, how many devices it has there, and for how long all of them are idle.",
		queries: []query{
			of(`count by (` + target + `, namespace, pod) (group by (` + target + `, device, namespace, pod) (accel_allocation_info{` + inPool + `}))`),
			of(`min by (` + target + `, namespace, pod) (accel_allocation_idle_seconds{` + inPool + `}) or NaN * group by (` + target + `, namespace, pod) (accel_allocation_info{` + inPool + `})`),
		},
		columns: []column{
			nodeColumn.wide(75), namespaceColumn.wide(85), podColumn,
			{of: "A", title: "Devices", width: 65, sort: true},
			{of: "B", title: "Idle for", unit: "s", width: 70},
		},
	}
}
