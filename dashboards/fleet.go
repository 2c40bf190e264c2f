package main

import "fmt"

// fleet shows whether something is wrong, where, which pods are affected, and the
// free capacity of the fleet.
func fleet() board {
	return board{
		uid: "accel-fleet", title: "Accelerators / Fleet", from: "now-6h",
		about:     "Whether something is wrong with the accelerators, where, and which pods are affected; what is allocated, idle and free.",
		variables: []variable{datasource, cluster, pool, jobs},
		events:    []event{alerts(`severity="critical",`+onPools, notElsewhere)},
		rows: []row{
			{title: "Is something wrong?", panels: fleetNow()},
			{title: "Where, and which pods are affected?", panels: []panel{whole(firingAlerts(firing(`severity!="info",`+onPools) + notElsewhere)), whole(incidentsOf(inPool, unobserved(inPool)))}},
			{title: "Nodes", panels: []panel{fleetGrid()}},
			{title: "Capacity", panels: fleetCapacity()},
			{title: "Health over time", panels: fleetHealth()},
			{title: "Drift", panels: fleetDrift()},
		},
	}
}

const (
	known    = `sum(pool_model:accel_devices:count{` + inPool + `})`
	noRules  = "No devices, or the recording rules are not loaded"
	noAlerts = "No alert fires, or the rules are not loaded"
)

// inAnyPool selects what is in the cluster.
const inAnyPool = `cluster=~"$cluster"`

// wholeReasons is the health reasons of whole devices.
const wholeReasons = `accel_device_health_reason{parent="",` + inPool + `} == 1`

// freeWhole are the whole devices that can be allocated, unfitWhole those that failed
// or cannot be observed.
const (
	unfit      = `accel_device_health{parent="",state=~"failed|unknown",` + inPool + `} == 1`
	freeWhole  = `accel_device_info{parent="",class!="switch",` + inPool + `} and ` + perDevice + ` accel_device_holders == 0 unless ` + perDevice + ` ` + unfit
	unfitWhole = `accel_device_info{parent="",class!="switch",` + inPool + `} and ` + perDevice + ` ` + unfit
)

func fleetNow() []panel {
	degraded := `sum(accel_device_health{parent="",state="degraded",` + inPool + `})`
	exporters := `up{job=~"$job",` + inPool + `}`
	return []panel{
		tile(panel{
			kind: number, title: "Failed devices", unit: "none", scale: bad(1), empty: noRules,
			about:   "Whole devices whose verdict is failed or unknown: work on them is lost, or their state cannot be determined. Any is bad.",
			queries: []query{{expr: zeroWhere(`count(`+unfitWhole+`)`, known)}},
		}),
		tile(panel{
			kind: number, title: "Degraded devices", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noRules,
			about:   "Devices on which work continues although they need attention.",
			queries: []query{{expr: zeroWhere(degraded, known)}},
		}),
		tile(panel{
			kind: number, title: "Critical alerts", unit: "none", scale: bad(1), empty: noRules,
			about:   "Firing alerts with severity critical: work is lost or about to be. Listed below.",
			queries: []query{{expr: zeroWhere(`count(`+firing(`severity="critical",`+onPools)+notElsewhere+`)`, known)}},
		}),
		tile(panel{
			kind: number, title: "Pods affected", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noRules,
			about:   "Pods with a degraded or failed device, or a partition of one. The incidents below name them.",
			queries: []query{{expr: zeroWhere(podsOnSick(inPool), known)}},
		}),
		tile(panel{
			kind: number, title: "Worst availability", unit: "percentunit", empty: noRules, decimals: f(2),
			about:   "Share of devices that are not failed, in the pool where it is lowest. Devices that cannot be observed do not count.",
			scale:   scale{red, []step{{0.95, orange}, {0.99, green}}},
			queries: []query{{expr: `min(pool:accel_device_availability:ratio{` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Exporters down", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: "No exporter is scraped",
			about:   "Exporters that could not be scraped. The state of the devices of their nodes is unknown.",
			queries: []query{{expr: `sum(1 - ` + exporters + `)`}},
			links:   []jump{*jumpTo("accel-exporter", "Exporters")},
		}),
		wideTile(panel{
			kind: number, title: "Allocated", unit: "percentunit", decimals: f(0), scale: only(blue), empty: "Allocations are unknown",
			about:   "Share of the devices and partitions that a pod has.",
			queries: []query{{expr: `avg(accel_device_holders{` + inPool + `} > bool 0)`}},
		}),
		wideTile(panel{
			kind: number, title: "Use of allocated devices", unit: "percentunit", decimals: f(0), scale: only(blue), empty: "Nothing is allocated, or no use is measured",
			about:   "Mean share of time in which the pods had a kernel running on their devices.",
			queries: []query{{expr: `avg(accel_allocation_utilization_ratio{` + inPool + `})`}},
		}),
		wideTile(panel{
			kind: number, title: "Idle devices", unit: "none", decimals: f(1), scale: scale{green, []step{{0.05, yellow}}}, empty: noRules,
			about:   "Allocations on which nothing ran in the last five minutes, on average. *Waste* names their pods.",
			queries: []query{{expr: `sum(namespace:accel_allocation_idle_seconds:rate5m{` + inPool + `})`}},
			links:   []jump{*jumpTo("accel-idle", "Waste")},
		}),
		wideTile(panel{
			kind: number, title: "Cost of idleness per hour", unit: "none", decimals: f(2), both: true, scale: only(yellow), empty: noPrices,
			about:   "Cost of the idle time of the last five minutes, for an hour and by currency. Needs prices in the exporter's configuration.",
			queries: []query{{`3600 * sum by (currency) (namespace:accel_allocation_idle_cost:rate5m{` + inPool + `})`, "{{currency}}"}},
			links:   []jump{*jumpTo("accel-idle", "Waste")},
		}),
	}
}

// fleetGrid is one row for each node, with a cell for the health of each device.
func fleetGrid() panel {
	of := func(expr string) query {
		return query{expr: keep(host(expr), "host")}
	}
	const sick, device = `parent="",` + inPool, target + ", device"
	health := `max by (` + device + `) (` + healthOf(sick) + `)`
	at := func(index string) query {
		return of(health + ` and ` + perDevice + ` accel_device_info{parent="",class!="switch",index` + index + `,` + inPool + `}`)
	}
	p := panel{
		kind: listing, title: "Health of each node and device", unit: "none", width: 24, height: 12, empty: "No device is known",
		about: "One row for each node, the worst first: the health of each device by its index, of further ones and FPGAs the worst; whether its exporter is up, which share of its devices and partitions is allocated, the mean use of allocated ones, and what their idle time costs in an hour. An empty cell: there is no such device.",
		queries: []query{
			of(health), of(`up{job=~"$job",` + inPool + `}`),
			{expr: scoped(`avg by (cluster, host) (` + host(`accel_device_holders{`+inPool+`} > bool 0`) + `)`)},
			{expr: scoped(`avg by (cluster, host) (` + host(`accel_allocation_utilization_ratio{`+inPool+`}`) + `)`)},
			{expr: scoped(`3600 * sum by (cluster, host, currency) (` + host(`rate(accel_allocation_idle_cost_total{`+inPool+`}[$__rate_interval])`) + `)`)},
		},
		columns: []column{nodeColumn, {of: "A", title: "Worst", states: healthStates, width: 74, sort: true}},
	}
	for i := range 9 {
		c, index := column{title: "Others", width: 74}, `!~"[0-7]"`
		if i < 8 {
			c, index = column{title: fmt.Sprint(i), width: 74}, fmt.Sprintf(`="%d"`, i)
		}
		c.of, c.states = refID(len(p.queries)), healthStates
		p.queries, p.columns = append(p.queries, at(index)), append(p.columns, c)
	}
	p.columns = append(
		p.columns,
		column{of: "B", title: "Exporter", states: upStates, width: 68},
		column{of: "C", title: "Allocated", unit: "percentunit", width: 100, gauge: true},
		column{of: "D", title: "Use", unit: "percentunit", width: 100, gauge: true},
		column{of: "E", title: "Idle cost/h", width: 80},
		column{of: "currency", title: "Currency", width: 74},
	)
	return p
}

// podsOnSick counts the pods with a device that is degraded or failed.
func podsOnSick(allocations string) string {
	return `count(group by (cluster, namespace, pod) (accel_allocation_info{` + allocations + `} and ` + perDevice + ` (accel_device_health{state=~"degraded|failed",` + inAnyPool + `} == 1)))`
}

// firingAlerts lists alerts with what they are about.
func firingAlerts(alerts string) panel {
	const labels = "severity, alertname, cluster, pool, node, instance, device, namespace, workload"
	about := `label_replace((` + alerts + `) * ignoring (alertstate) ALERTS_FOR_STATE, "workload", "$1", "pod", "(.+)")`
	since := `max by (` + labels + `) (` + about + `)`
	// Alerts without a device, or of a forgotten device, have no name.
	named := `(` + since + `) * on (cluster, node, device) group_left (name) group by (cluster, node, device, name) (` + names(inAnyPool) + `)`
	since = `1000 * (` + named + ` or on (` + labels + `) ` + since + `)`
	for i, s := range severities {
		since = fmt.Sprintf(`label_replace(%s, "rank", "%d", "severity", "%s")`, since, i, s.value)
	}
	return panel{
		kind: listing, title: "Firing alerts", unit: "none", empty: noAlerts,
		about:   "Firing alerts and their start, critical ones first; *Fleet* omits severity info. A click on an alert opens its runbook. Alerts that exporters send to Alertmanager directly are not listed: Prometheus must have the rules.",
		queries: []query{{expr: keep(host(since), "rank, severity, alertname, host, name, device, namespace, workload")}},
		columns: []column{
			{of: "rank", title: "Rank", hidden: true, sortUp: true},
			{of: "severity", title: "Severity", states: severities, width: 90},
			{of: "alertname", title: "Alert", jump: toRunbook(), width: 230},
			nodeColumn, nameColumn, namespaceColumn,
			{of: "workload", title: "Workload or pod"},
			{of: "A", title: "Since", unit: "dateTimeFromNow", sort: true, width: 110},
			idColumn,
		},
	}
}

// unobserved is further incidents: devices whose state is unknown.
func unobserved(selector string) string {
	return ` or label_replace(label_replace(accel_device_health{parent="",state="unknown",` + selector + `} == 1, "kind", "unknown", "", ""), "summary", "The device is not observed.", "", "")`
}

// incidentsOf has a row for each whole device of the selector that is not healthy: the
// exporter's summary, and what it has seen.
func incidentsOf(selector, further string) panel {
	rows := `accel_device_incident_timestamp_seconds{` + selector + `}` + further
	for i, s := range incidents {
		rows = fmt.Sprintf(`label_replace(%s, "rank", "%d", "kind", "%s")`, rows, i, s.value)
	}
	return panel{
		kind: listing, title: "Incidents", unit: "none", empty: "No device is degraded, failed or unobserved, or no health is known",
		about:   "One row for each whole device that is not healthy, the gravest first: what happened, whose work it hurts and what to do; all reasons; pods that have held the device since. docs/health.md explains reasons and actions.",
		queries: []query{{expr: keep(host(rows), "rank, kind, host, device, summary, reasons, action, pods, since")}},
		columns: []column{
			{of: "rank", title: "Rank", hidden: true, sortUp: true},
			{of: "kind", title: "State", states: incidents, width: 100},
			nodeColumn,
			{of: "summary", title: "Incident", jump: toDevice(), wrapped: true},
			{of: "reasons", title: "Reasons", jump: toHealth("catalogue"), width: 200, wrapped: true},
			{of: "action", title: "Action", jump: toHealth("actions"), width: 110},
			{of: "pods", title: "Pods", width: 170, wrapped: true},
			{of: "since", title: "Since", width: 140},
			idColumn,
		},
	}
}

func fleetCapacity() []panel {
	sum := func(name string) string { return zeroWhere(`sum(`+name+`{`+inPool+`})`, known) }
	byModel := func(devices string) query {
		return query{expr: `count by (cluster, pool, class, model) (` + devices + `)`}
	}
	now := func(expr string) query {
		return query{expr: `count by (cluster, pool, class, model) (accel_device_info{parent="",class!="switch",` + inPool + `} and ` + perDevice + ` ` + expr + `)`}
	}
	idle := fmt.Sprintf(`(min by (%s, device) (accel_allocation_idle_seconds{%s}) > %d)`, target, inPool, idleAfter)
	return []panel{
		{
			kind: lines, title: "Devices by use", unit: "none", width: 10, height: 9, empty: noRules, min: f(0), dashed: "^all$",
			about: "Whole devices: all, free, and unfit because they failed or cannot be observed. Allocated, and idle on average of five minutes, are devices and partitions; of a shared device each pod counts as idle. Unfit devices may be allocated.",
			queries: []query{
				{known, "all"},
				{sum("namespace:accel_allocated_devices:count"), "allocated"},
				{sum("namespace:accel_allocation_idle_seconds:rate5m"), "idle"},
				{zeroWhere(`count(`+freeWhole+`)`, known), "free"},
				{zeroWhere(`count(`+unfitWhole+`)`, known), "unfit"},
			},
			colours: []state{{value: "all", colour: plain}, {value: "allocated", colour: green}, {value: "idle", colour: yellow}, {value: "free", colour: blue}, {value: "unfit", colour: red}},
		},
		{
			kind: listing, title: "Devices by pool and model", unit: "none", width: 14, height: 9, empty: noRules,
			about:   fmt.Sprintf("Whole devices by pool and model. Idle: allocated, and nothing has run for %d minutes or longer. Devices that are divided into partitions are neither allocated nor free. An empty cell means none.", idleAfter/60),
			queries: []query{byModel(`accel_device_info{parent="",class!="switch",` + inPool + `}`), now(`(accel_device_holders > 0)`), now(idle), byModel(freeWhole), byModel(unfitWhole)},
			columns: []column{
				clusterColumn,
				{of: "pool", title: "Pool"},
				{of: "class", title: "Class", width: 70},
				{of: "model", title: "Model"},
				{of: "A", title: "All", width: 70, sort: true},
				{of: "B", title: "Allocated", width: 90},
				{of: "C", title: "Idle", width: 70, scale: &scale{none, []step{{1, yellow}}}},
				{of: "D", title: "Free", width: 70, scale: &scale{none, []step{{1, blue}}}},
				{of: "E", title: "Unfit", width: 70, scale: &scale{none, []step{{1, red}}}},
			},
		},
		half(panel{
			kind: lines, title: "Use of allocated devices, by namespace", unit: "percentunit", empty: noRules, min: f(0), max: f(1),
			about:   "Mean share of time in which the pods had a kernel running, for the ten namespaces with most devices. Low use on many devices is wasted capacity.",
			queries: []query{{`sum by (namespace) (namespace:accel_allocation_utilization:avg{` + inPool + `} * namespace:accel_allocated_devices:count{` + inPool + `}) / sum by (namespace) (namespace:accel_allocated_devices:count{` + inPool + `}) and topk(10, sum by (namespace) (namespace:accel_allocated_devices:count{` + inPool + `}))`, "{{namespace}}"}},
			links:   []jump{*jumpTo("accel-workload", "This namespace", "namespace", "${__field.labels.namespace}")},
		}),
		half(panel{
			kind: listing, title: "MIG instances by profile", unit: "none", empty: "No device is partitioned",
			about:   "Existing and allocated partitions, by pool and profile.",
			queries: []query{{expr: `sum by (cluster, pool, model, profile) (pool_profile:accel_partitions:count{` + inPool + `})`}, {expr: `sum by (cluster, pool, model, profile) (pool_profile:accel_partitions_allocated:count{` + inPool + `})`}},
			columns: []column{clusterColumn, {of: "pool", title: "Pool"}, {of: "model", title: "Model"}, {of: "profile", title: "Profile"}, {of: "A", title: "All", sort: true}, {of: "B", title: "Allocated"}},
		}),
	}
}

func fleetHealth() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Availability by pool", unit: "percentunit", empty: noRules, max: f(1),
			about:   "Share of devices that are not failed. Devices that cannot be observed do not count.",
			queries: []query{{`pool:accel_device_availability:ratio{` + inPool + `}`, "{{cluster}} {{pool}}"}},
		}),
		third(panel{
			kind: lines, title: "Devices by reason", unit: "none", stacked: true, empty: "No device is degraded or failed",
			about:   "Whole devices by reason. One device may have several.",
			queries: []query{{`count by (reason) (` + wholeReasons + `)`, "{{reason}}"}},
		}),
		third(panel{
			kind: listing, title: "Xids in the time range", unit: "none", empty: "No GPU has reported an Xid",
			about:   "Last time of each Xid on each GPU. Numbers 13, 31, 43 and 69 are usually application errors.",
			queries: []query{{expr: keep(host(named(inPool, `max by (`+target+`, device, xid) (1000 * (accel_gpu_xid_last_timestamp_seconds{`+inPool+`} > time() - $__range_s))`)), "xid, host, name, device")}},
			columns: []column{{of: "A", title: "Last seen", unit: "dateTimeFromNow", sort: true}, {of: "xid", title: "Xid", width: 60}, nodeColumn, nameColumn, idColumn},
		}),
	}
}

func fleetDrift() []panel {
	p := driverMatrix()
	p.links = []jump{*jumpTo("accel-drift", "Rollout")}
	deviating := half(panel{
		kind: listing, title: "Devices that differ from the baseline", unit: "none", empty: "No device differs, or there is no baseline",
		about:   "Devices that are not approved, by pool and component.",
		queries: []query{{expr: `count by (cluster, pool, component) (` + notApproved + `)`}},
		columns: []column{clusterColumn, {of: "pool", title: "Pool"}, {of: "component", title: "Component", jump: jumpTo("accel-drift", "Rollout")}, {of: "A", title: "Devices", sort: true, scale: &scale{none, []step{{1, orange}}}}},
	})
	return []panel{half(p), deviating}
}
