package main

import "fmt"

// workload shows the owner of a service which devices the pods have, whether they use
// them, and whether hardware faults affected them; and to whom devices are wasted.
func workload() board {
	return board{
		uid: "accel-workload", title: "Accelerators / Workload and waste", from: "now-24h",
		about:     "The devices of pods: health, use, and hardware faults that affected them; what is idle or underused, who has it, and what giving it back would save.",
		variables: []variable{datasource, cluster, pool, namespace, pods},
		events:    []event{workloadAlertEvent(), hits()},
		rows: []row{
			{title: "How are my pods?", panels: workloadNow()},
			{title: "Pods", panels: []panel{workloadPods(), whole(incidentTable(`accel_device_incident_timestamp_seconds{` + hurtPods + `}`)), workloadHits(), workloadAlerts()}},
			{title: "Use", panels: workloadUse()},
			{title: "Waste: what to reclaim", panels: append(wasteNow(), idleHolds(), underusedHolds(), freeDevices())},
			{title: "Waste over time, by namespace and by workload", panels: append(wasteTrend(), wasteOwners()...)},
		},
	}
}

const (
	inSpace = inPool + `,namespace=~"$namespace"`
	inPods  = inSpace + `,pod=~"$pod"`
	ofPods  = inAny + `,namespace=~"$namespace",pod=~"$pod"`
	noPods  = "No allocation is known"
	// hurtPods is the incidents that name a pod.
	hurtPods = inAny + `,pods=~"(.* )?$namespace/$pod( .*)?"`
	// Alerts are on pods and workloads, or on devices, whose incidents name the pods.
	withWorkload = inAny + `,namespace=~"$namespace",namespace!="",pod=~"$pod|"`
	withDevice   = inAny + `,namespace="",device!=""`
	thatHurt     = ` and on (cluster, node, device) accel_device_incident_timestamp_seconds{` + hurtPods + `}`

	holdLabels = target + ", device, namespace, pod"
	perHold    = "on (" + holdLabels + ")"
	perPod     = "on (cluster, namespace, pod)"
	noHolds    = "No allocation, or no recording rules"
	noPrices   = "No prices, or not idle"
	podName    = "{{cluster}} {{namespace}}/{{pod}}"
)

func workloadAlertEvent() event {
	e := alerts(withWorkload, "")
	e.expr += " or " + alerts(withDevice, thatHurt).expr
	return e
}

// hits marks faults of devices that are allocated to a pod.
func hits() event {
	return event{
		name: "Faults", colour: orange, valueIsTime: true,
		expr:  `accel_allocation_fault_timestamp_seconds{` + inPods + `} * 1000`,
		title: "{{fault}}", text: "{{namespace}}/{{pod}} {{device}}",
	}
}

// of is the allocations of a family, once for each device and pod.
func of(family, in string) string { return `max by (` + holdLabels + `) (` + family + `{` + in + `})` }

// idleNow and underusedNow are the allocations that are counted in the first rows and
// listed below.
func idleNow(in string) string { return of("accel_allocation_idle_seconds", in) + ` > 0` }

func underusedNow(in string) string {
	return fmt.Sprintf(`max by (%s) (avg_over_time(accel_allocation_utilization_ratio{%s}[30m])) < %v unless %s (%s)`, holdLabels, in, underusedBelow, perHold, idleNow(in))
}

// hardware is the faults that a pod did not cause.
const hardware = `fault=~"xid_(46|48|57|58|59|62|63|64|74|79|92|94|95|109|110|119|120|121|136|140|143|155|156|158|167|169|171|172|173|175)|bus_loss|gpu_unavailable|poison|poison_fatal|ecc_double_bit|dram_retirement_failure|ecc_uncorrected|reset_failed|wedged|thermal_shutdown"`

func workloadNow() []panel {
	anyPod := `accel_allocation_info{` + inPods + `}`
	return tiles(
		panel{
			title: "Devices allocated", scale: only(blue), empty: noPods,
			about:   "Devices and partitions that are allocated to the pods.",
			queries: []query{{expr: `count(` + of("accel_allocation_info", inPods) + `)`}},
		},
		panel{
			title: "Use", unit: "percentunit", decimals: f(0), scale: only(blue), empty: "Not measured",
			about:   "Mean share of time in which the pods had a kernel running. If low, fewer or smaller devices are enough.",
			queries: []query{{expr: `avg(accel_allocation_utilization_ratio{` + inPods + `})`}},
		},
		panel{
			title: "Idle now", scale: upFrom(1, yellow), empty: noMeasured,
			about:   "Allocations on which nothing runs. Listed below by what giving them back saves.",
			queries: count(idleNow(inPods), `accel_allocation_idle_seconds{`+inPods+`}`),
		},
		panel{
			title: "On devices in trouble", scale: upFrom(1, orange), empty: noPods,
			about:   "Pods with a degraded or failed device, or a partition of one.",
			queries: count(podsOnSick(inPods), anyPod),
		},
		panel{
			title: "Hit by a fault", scale: upFrom(1, orange), empty: noPods,
			about:   "Pods that a hardware fault hit within the last hour. They did not cause it: restart them on other devices. Xids that applications cause do not count.",
			queries: count(`group by (cluster, namespace, pod) (accel_allocation_fault_age_seconds{`+hardware+`,`+inPods+`} < 3600)`, anyPod),
		},
		panel{
			title: "Cost of idle time", decimals: f(2), both: true, scale: only(blue), empty: noPrices,
			about:   "Cost of the idle time of the pods since their start, by currency.",
			queries: []query{{`sum by (currency) (accel_allocation_idle_cost_total{` + inPods + `})`, "{{currency}}"}},
		},
	)
}

func workloadPods() panel {
	row := func(expr string) query {
		return onDevices(inPool, expr, "namespace, pod", "model", "profile")
	}
	sick := of("accel_allocation_info", inPods) + ` * ` + perDevice + ` group_left () (` + healthOf(inPool) + `)`
	return panel{
		kind: listing, title: "Devices of each pod", width: 24, height: 10, empty: noPods,
		about:   "One row for each pod and device, the sickest device first, then the longest idle. An empty cell means not measured: the power of partitions and shared devices is not measured.",
		queries: []query{row(sick), row(of("accel_allocation_utilization_ratio", inPods)), row(of("accel_allocation_memory_used_bytes", inPods)), row(of("accel_allocation_power_watts", inPods)), row(of("accel_allocation_idle_seconds", inPods)), row(of("accel_allocation_seconds_total", inPods))},
		columns: []column{
			namespaceColumn, podColumn, nodeColumn, nameColumn,
			{of: "A", title: "Health", states: healthStates, width: 85, sort: true},
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 80},
			{of: "B", title: "Use", unit: "percentunit", width: 60},
			{of: "C", title: "Memory", unit: "bytes", width: 80},
			{of: "D", title: "Power", unit: "watt", width: 70},
			{of: "E", title: "Idle for", unit: "s", width: 80, sort: true, scale: &scale{none, []step{{idleAfter, yellow}}}},
			{of: "F", title: "Allocated for", unit: "s", width: 105},
		},
	}
}

func workloadHits() panel {
	return half(panel{
		kind: listing, title: "Faults that hit pods", empty: "No fault in the last hour, or no allocation is known",
		about:   "Faults of devices while they were allocated to the pod, including faults after which the pod ended. docs/health.md explains xid_N.",
		queries: []query{onDevices(inAny, `1000 * max by (`+holdLabels+`, fault) (accel_allocation_fault_timestamp_seconds{`+inPods+`})`, "namespace, pod, fault")},
		columns: []column{podColumn, {of: "fault", title: "Fault", jump: toHealth("catalogue")}, nodeColumn, nameColumn, {of: "A", title: "When", unit: "dateTimeFromNow", sort: true, width: 120}},
	})
}

func workloadAlerts() panel {
	p := firingAlerts(firing(withWorkload) + " or " + firing(withDevice) + thatHurt)
	p.columns = []column{p.columns[0], p.columns[1].wide(70), p.columns[2], nodeColumn.wide(55), nameColumn.wide(105), {of: "workload", title: "Workload or pod"}, sinceColumn.wide(110), {of: "namespace", title: "Namespace", hidden: true}, clusterColumn.wide(48)}
	return half(p)
}

func workloadUse() []panel {
	byPod := func(expr string) []query {
		return []query{{`sum by (cluster, namespace, pod) (` + expr + `)`, podName}}
	}
	return []panel{
		half(panel{
			kind: lines, title: "Use by pod", unit: "percentunit", min: f(0), max: f(1), empty: noHolds,
			about:   "Mean over the pod's devices of the share of time in which it had a kernel running, smoothed over three minutes, as autoscalers read it.",
			queries: byPod(`namespace_pod:accel_utilization:avg_over_3m{` + ofPods + `}`),
		}),
		half(panel{
			kind: lines, title: "Wait for the first activity", unit: "s", min: f(0), empty: "Each pod has used its devices",
			about:   "Longest time for which a pod has a device and has not used it yet, by resource: image pulls and model loading. Devices whose use is not measured are absent. If long, devices wait for pods.",
			queries: []query{{`max by (cluster, resource) (accel_allocation_idle_seconds{` + inPods + `} unless ` + perHold + ` accel_allocation_last_activity_timestamp_seconds{` + inPods + `})`, "{{cluster}} {{resource}}"}},
		}),
	}
}

var wasteColours = []state{
	{value: "used", colour: green}, {value: "underused", colour: "light-green"}, {value: "idle", colour: yellow},
}

// Allocations at a time, as recorded.
const (
	heldSeconds  = `namespace:accel_allocation_seconds:rate5m{` + inSpace + `}`
	idleSeconds  = `namespace:accel_allocation_idle_seconds:rate5m{` + inSpace + `}`
	underSeconds = `namespace:accel_allocation_underused_seconds:rate5m{` + inSpace + `}`
	idleCost     = `namespace:accel_allocation_idle_cost:rate5m{` + inSpace + `}`
)

// idleShare is weighted by time: it divides sums. A rate that begins is extrapolated, so
// the share of a short time could exceed 1.
func idleShare(window string) string {
	return `clamp_max(sum_over_time(sum(` + idleSeconds + `)[` + window + `]) / sum_over_time(sum(` + heldSeconds + `)[` + window + `]), 1)`
}

// underusedMeans explains the second colour of the stack.
func underusedMeans() string {
	return fmt.Sprintf("Underused: not idle, and a mean use below %.0f %%; a pod whose use is not measured counts as used. An allocation is a device or a partition of a pod; a shared device is one for each pod, so there may be more than devices.", 100*underusedBelow)
}

func wasteNow() []panel {
	known := `accel_allocation_idle_seconds{` + inPods + `}`
	idle, under := zeroWhere(`count(`+idleNow(inPods)+`)`, `count(`+known+`)`), zeroWhere(`count(`+underusedNow(inPods)+`)`, `count(`+known+`)`)
	return tiles(
		panel{
			title: "Allocations now", decimals: f(0), both: true, empty: noMeasured, colours: wasteColours, scale: only(blue),
			about: "Allocations that are used, underused and idle now; the last two are listed below. " + underusedMeans(),
			queries: []query{
				{`count(` + of("accel_allocation_idle_seconds", inPods) + `) - ` + idle + ` - ` + under, "used"},
				{under, "underused"},
				{idle, "idle"},
			},
		},
		panel{
			title: "Idle share of allocated time", unit: "percentunit", decimals: f(0), both: true, empty: noHolds,
			about:   "Share of the allocated time in which nothing ran, of the last day, week and 30 days.",
			scale:   scale{green, []step{{0.05, yellow}, {0.25, orange}}},
			queries: []query{{idleShare("1d:2m"), "1 day"}, {idleShare("7d:2m"), "7 days"}, {idleShare("30d:2m"), "30 days"}},
		},
		panel{
			title: "Saved in a month", decimals: f(0), both: true, empty: noPrices,
			about:   "What giving back every idle allocation of the list below would save in 730 hours, by currency.",
			scale:   only(yellow),
			queries: []query{{`sum by (currency) (730 * (` + priceOf(idleNow(inPods)) + `))`, "{{currency}}"}},
		},
	)
}

// withOwner adds the labels workload and owner of the pod; they are empty where
// they are not known.
func withOwner(expr string) string {
	for _, info := range [][2]string{
		{"workload", `namespace_pod:accel_workload:info`},
		{"owner", `label_replace(accel_pod_label_info{label=~"(.+/)?(owner|team)"}, "owner", "$1", "value", "(.+)")`},
	} {
		known := `topk by (cluster, namespace, pod) (1, group by (cluster, namespace, pod, ` + info[0] + `) (` + info[1] + `))`
		expr = `(` + expr + `) * ` + perPod + ` group_left (` + info[0] + `) (` + known + ` or ` + perPod + ` group by (cluster, namespace, pod) (accel_allocation_info{` + inPods + `}))`
	}
	return expr
}

const ownerAbout = " Workload: the controller, from the API server or kube-state-metrics, else the pod. Owner: the pod label owner or team, where --kubernetes.pod-label selects it."

// priceOf is the price of the pod's part of the device for an hour, by currency,
// from the last hour with idle time.
func priceOf(of string) string {
	each := func(family, labels string) string {
		return `max by (` + holdLabels + labels + `) (rate(` + family + `{` + inPods + `}[1h]))`
	}
	return `3600 * ` + each("accel_allocation_idle_cost_total", ", currency") + ` / ` + perHold + ` group_left () (` + each("accel_allocation_idle_seconds_total", "") + ` > 0) and ` + perHold + ` (` + of + `)`
}

// onHolds has a row for each pod and device.
func onHolds(expr string, labels ...string) query {
	all := "host, device, namespace, pod"
	for _, l := range labels {
		all += ", " + l
	}
	return query{expr: keep(host(expr), all)}
}

// holdRow is a row with what is known of pod and device.
func holdRow(expr string) query {
	return onDevices(inPool, withOwner(expr), "namespace, pod", "model", "profile", "workload", "owner")
}

// idleHolds has a row for each pod and device that is idle now.
func idleHolds() panel {
	idle := idleNow(inPods)
	fires := `(namespace_pod:accel_workload:info and on (cluster, namespace, workload) ALERTS{alertstate="firing",alertname="AllocationIdle",` + inAny + `})`
	exempt := `group by (` + holdLabels + `) (accel_allocation_idle_seconds{namespace=~"` + idleExempt + `",` + inPods + `} or accel_allocation_idle_seconds{` + inPods + `} and ` + perPod + ` namespace_pod:accel_idle_permitted:info)`
	return panel{
		kind: listing, title: "Idle allocations", width: 24, height: 10, empty: "Nothing is idle, or no allocation is known",
		key:   "scope, cluster, host, device, namespace, pod",
		about: fmt.Sprintf("Each pod and device that is idle now, the most expensive first. Yellow from %d minutes on, when AllocationIdle fires for the workload of a pod that has worked before; orange from %d minutes on, when it fires for one that has not. exempt: by a label of the pod, by its namespace, or because it has ended. The saving is the price of the pod's part of the device for 730 hours.", idleAfter/60, neverUsedAfter/60) + ownerAbout,
		queries: []query{
			holdRow(idle),
			onHolds(`730 * (`+priceOf(idle)+`)`, "currency"),
			onHolds(`(2 * ` + exempt + ` or ` + perHold + ` (` + idle + ` and ` + perPod + ` ` + fires + `) ^ 0 or ` + perHold + ` 0 * (` + idle + ` and on () ` + rulesLoaded + `)) and ` + perHold + ` (` + idle + `)`),
			onHolds(`1000 * ` + of("accel_allocation_last_activity_timestamp_seconds", inPods) + ` and ` + perHold + ` (` + idle + `)`),
		},
		columns: []column{
			{of: "B", title: "Saves a month", width: 120, sort: true},
			{of: "currency", title: "Currency", width: 75},
			namespaceColumn, podColumn,
			{of: "A", title: "Idle for", unit: "s", sort: true, width: 80, scale: &scale{none, []step{{idleAfter, yellow}, {neverUsedAfter, orange}}}},
			{of: "C", title: "Alert", states: []state{{"0", "not yet", none}, {"1", "fires", orange}, {"2", "exempt", blue}}, width: 70},
			{of: "workload", title: "Workload"},
			{of: "owner", title: "Owner"},
			nodeColumn, nameColumn,
			{of: "D", title: "Last activity", unit: "dateTimeFromNow", blank: "never", width: 120},
			{of: "model", title: "Model", hidden: true},
			{of: "profile", title: "Profile", hidden: true},
		},
	}
}

// underusedHolds has the pods that would do with less.
func underusedHolds() panel {
	under := underusedNow(inPods)
	return panel{
		kind: listing, title: "Underused allocations", width: 15, height: 9, empty: "Nothing is underused, or no use is measured",
		about:   fmt.Sprintf("Pods with a mean use of a device below %.0f %% in the last 30 minutes that are not idle: candidates for a MIG device, for sharing, or for fewer replicas.", 100*underusedBelow) + ownerAbout,
		queries: []query{holdRow(under)},
		columns: []column{
			{of: "A", title: "Use", unit: "percentunit", width: 90, sortUp: true, gauge: true},
			namespaceColumn.wide(85), podColumn,
			{of: "owner", title: "Owner", width: 70},
			nodeColumn.wide(75), nameColumn.wide(95),
			{of: "profile", title: "Profile", width: 70},
			{of: "model", title: "Model", hidden: true},
			{of: "workload", title: "Workload", hidden: true},
		},
	}
}

// freeDevices is what can be allocated, whole devices and partitions.
func freeDevices() panel {
	const labels = "cluster, pool, model, profile"
	parts := func(more string) string {
		return `count by (` + labels + `) (accel_device_info{parent!="",` + inPool + `}` + more + `)`
	}
	return panel{
		kind: listing, title: "Free devices and partitions", width: 9, height: 9, empty: "Nothing is free, or allocations are not known",
		about: "Healthy devices and partitions without a pod, and all of the kind. Free devices beside idle allocations: no pod waits for a device. Pods that wait although devices are free need another model or profile.",
		queries: []query{
			{expr: `count by (` + labels + `) (` + freeWhole + `) or ` + parts(` and `+perDevice+` accel_device_holders == 0`)},
			{expr: `count by (` + labels + `) (accel_device_info{class!="switch",` + allWhole + `}) or ` + parts("")},
		},
		columns: []column{
			{of: "A", title: "Free", width: 50, sort: true, scale: &scale{none, []step{{1, blue}}}},
			{of: "B", title: "All", width: 50},
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 70},
			poolColumn.wide(60), clusterColumn.wide(60),
		},
	}
}

func wasteTrend() []panel {
	under := zeroWhere(`sum(`+underSeconds+`)`, `sum(`+heldSeconds+`)`)
	return []panel{
		whole(panel{
			kind: lines, title: "Allocations: used, underused, idle", stacked: true, min: f(0), empty: noHolds, colours: wasteColours,
			about:   "All allocations on average of five minutes, one colour on the other. " + underusedMeans(),
			queries: []query{{`clamp_min(sum(` + heldSeconds + `) - sum(` + idleSeconds + `) - ` + under + `, 0)`, "used"}, {under, "underused"}, {`sum(` + idleSeconds + `)`, "idle"}},
		}),
	}
}

func wasteOwners() []panel {
	by := func(reduce, family string) query {
		return query{expr: keep(reduce+` by (cluster, namespace, workload) (`+family+` * `+perPod+` group_left (workload) namespace_pod:accel_workload:info)`, "namespace, workload")}
	}
	return []panel{
		half(panel{
			kind: listing, title: "Namespaces, most idle time first", empty: noHolds, key: "scope, cluster, namespace",
			about: "Hours for which devices were allocated and idle in the time range, the share of the allocated time, and what it cost.",
			queries: []query{
				{expr: keep(`sum_over_time(sum by (cluster, namespace) (`+idleSeconds+`)[$__range:2m]) / 30`, "namespace")},
				{expr: keep(`clamp_max(sum_over_time(sum by (cluster, namespace) (`+idleSeconds+`)[$__range:2m]) / sum_over_time(sum by (cluster, namespace) (`+heldSeconds+`)[$__range:2m]), 1)`, "namespace")},
				{expr: keep(`sum_over_time(sum by (cluster, namespace, currency) (`+idleCost+`)[$__range:2m]) * 120`, "namespace, currency")},
			},
			columns: []column{
				namespaceColumn,
				{of: "A", title: "Idle hours", width: 90, sort: true},
				{of: "B", title: "Idle share", unit: "percentunit", width: 120, gauge: true},
				{of: "C", title: "Cost", width: 80},
				{of: "currency", title: "Currency", width: 75},
			},
		}),
		half(panel{
			kind: listing, title: "Workloads, most devices first", empty: noHolds,
			about:   "Controllers of the pods, from the API server or kube-state-metrics, else the pods themselves: their devices, the use now and the idle share of the last hour.",
			queries: []query{by("count", of("accel_allocation_info", inPods)), by("avg", of("accel_allocation_utilization_ratio", inPods)), {expr: keep(`avg_over_time(workload:accel_allocation_idle:ratio_rate5m{`+inAny+`,namespace=~"$namespace"}[1h])`, "namespace, workload")}},
			columns: []column{namespaceColumn, {of: "workload", title: "Workload"}, {of: "A", title: "Devices", sort: true, width: 80}, {of: "B", title: "Use", unit: "percentunit", width: 70}, {of: "C", title: "Idle", unit: "percentunit", width: 70, scale: &scale{none, []step{{0.5, yellow}, {0.9, orange}}}}},
		}),
	}
}
