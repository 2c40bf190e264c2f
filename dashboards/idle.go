package main

import "fmt"

const (
	ofNamespace = inPool + `,namespace=~"$namespace"`
	holdLabels  = target + ", device, namespace, pod"
	perHold     = "on (" + holdLabels + ")"
	perPod      = "on (cluster, namespace, pod)"
)

// idle shows the waste: devices that are idle, underused or free, who has them, and
// what would be saved without.
func idle() board {
	return board{
		uid: "accel-idle", title: "Accelerators / Waste", from: "now-7d",
		about:     "Devices that are idle, underused or free: who has them, since when, and what giving them back would save.",
		variables: []variable{datasource, cluster, pool, namespace},
		rows: []row{
			{title: "How much is wasted?", panels: idleNow()},
			{title: "What to reclaim", panels: []panel{idleHolds()}},
			{title: "Underused and free", panels: []panel{underusedHolds(), freeDevices()}},
			{title: "Trend", panels: idleTrend()},
			{title: "Namespaces and workloads", panels: idleOwners()},
		},
	}
}

// Devices of a selection at a time; free ones belong to no namespace.
const (
	heldSeconds  = `namespace:accel_allocation_seconds:rate5m{` + ofNamespace + `}`
	idleSeconds  = `namespace:accel_allocation_idle_seconds:rate5m{` + ofNamespace + `}`
	underSeconds = `namespace:accel_allocation_underused_seconds:rate5m{` + ofNamespace + `}`
	idleCost     = `namespace:accel_allocation_idle_cost:rate5m{` + ofNamespace + `}`
	underused    = `(sum(` + underSeconds + `) or 0 * sum(` + heldSeconds + `))`
	used         = `clamp_min(sum(` + heldSeconds + `) - sum(` + idleSeconds + `) - ` + underused + `, 0)`
	noHolds      = "No allocation, or the recording rules are not loaded"
	noPrices     = "No prices are configured, or nothing is idle"
)

// freeNow is what can be allocated, whole devices and partitions, by the labels.
func freeNow(by string) string {
	return `(sum by (` + by + `) (count by (cluster, pool, class, model) (` + freeWhole + `) or pool_profile:accel_partitions:count{` + inPool + `} - (pool_profile:accel_partitions_allocated:count{` + inPool + `} or 0 * pool_profile:accel_partitions:count{` + inPool + `})))`
}

// allFree is 0 where every device is allocated.
var allFree = zeroWhere(freeNow(""), known)

// hours is the device hours of an expression in the time range.
func hours(expr string) string { return `sum_over_time((` + expr + `)[$__range:1m]) / 60` }

// idleShare is weighted by time: it divides sums.
func idleShare(window string) string {
	return `sum_over_time(sum(` + idleSeconds + `)[` + window + `]) / sum_over_time(sum(` + heldSeconds + `)[` + window + `])`
}

var wasteColours = []state{
	{value: "used", colour: green}, {value: "underused", colour: "light-green"}, {value: "idle", colour: yellow}, {value: "free", colour: blue},
}

// kinds is the same of used, underused, idle and free devices.
func kinds(of func(expr string) string) []query {
	return []query{{of(used), "used"}, {of(underused), "underused"}, {of(`sum(` + idleSeconds + `)`), "idle"}, {of(allFree), "free"}}
}

func same(expr string) string { return expr }

// underusedMeans explains the second colour of the stack.
func underusedMeans() string {
	return fmt.Sprintf("Underused: not idle, and a mean use of the pod's devices below %.0f %%; a pod whose use is not measured counts as used. A partition counts as one device, a shared device as one for each pod. Free devices belong to no namespace.", 100*underusedBelow)
}

func idleNow() []panel {
	return []panel{
		wideTile(panel{
			kind: number, title: "Devices now", unit: "none", decimals: f(1), both: true, empty: noHolds, colours: wasteColours,
			about:   "Devices that were used, underused, idle and free in the last five minutes, on average. " + underusedMeans(),
			queries: kinds(same),
		}).sized(12, 4),
		panel{
			kind: number, title: "Idle share of allocated time", unit: "percentunit", decimals: f(1), both: true, empty: noHolds,
			about:   "Share of the allocated time in which nothing ran, of the last day, week and 30 days.",
			scale:   scale{green, []step{{0.05, yellow}, {0.25, orange}}},
			queries: []query{{idleShare("1d:2m"), "1 day"}, {idleShare("7d:2m"), "7 days"}, {idleShare("30d:2m"), "30 days"}},
		}.sized(12, 4),
		panel{
			kind: number, title: "Device hours in the time range", unit: "none", decimals: f(1), both: true, empty: noHolds, colours: wasteColours,
			about:   "Hours of devices that were used, underused, idle and free, in the time range. " + underusedMeans(),
			queries: kinds(hours),
		}.sized(12, 4),
		wideTile(panel{
			kind: number, title: "Cost of idle time, 30 days", unit: "none", decimals: f(0), both: true, empty: noPrices,
			about:   "Cost of the idle time of the last 30 days, by currency. Needs prices in the exporter's configuration.",
			scale:   only(blue),
			queries: []query{{`sum_over_time(sum by (currency) (` + idleCost + `)[30d:2m]) * 120`, "{{currency}}"}},
		}),
		wideTile(panel{
			kind: number, title: "Saved in a month without it", unit: "none", decimals: f(0), both: true, empty: noPrices,
			about:   "Cost of 30 days with as much idle time as in the last five minutes, by currency: what giving back every idle device would save.",
			scale:   only(yellow),
			queries: []query{{`sum by (currency) (` + idleCost + `) * 30 * 86400`, "{{currency}}"}},
		}),
		{
			kind: lines, title: "Devices: used, underused, idle, free", unit: "none", stacked: true, min: f(0), width: 24, height: 9, empty: noHolds, colours: wasteColours,
			about:   "All devices and partitions that can be allocated, one colour on the other. " + underusedMeans(),
			queries: kinds(same),
		},
	}
}

// ofHolds has a row for each pod and device: the queries of a listing are joined by
// these labels.
func ofHolds(expr string) string { return keep(host(expr), "host, device, namespace, pod") }

// withOwner adds the labels workload and owner of the pod; they are empty where
// they are not known.
func withOwner(expr string) string {
	for _, info := range [][2]string{
		{"workload", `namespace_pod:accel_workload:info`},
		{"owner", `label_replace(accel_pod_label_info{label=~"(.+/)?(owner|team)"}, "owner", "$1", "value", "(.+)")`},
	} {
		known := `topk by (cluster, namespace, pod) (1, group by (cluster, namespace, pod, ` + info[0] + `) (` + info[1] + `))`
		expr = `(` + expr + `) * ` + perPod + ` group_left (` + info[0] + `) (` + known + ` or ` + perPod + ` group by (cluster, namespace, pod) (accel_allocation_info{` + ofNamespace + `}))`
	}
	return expr
}

const ownerAbout = " Workload: the controller, from the API server or kube-state-metrics, else the pod. Owner: the pod label owner or team, where --kubernetes.pod-label selects it."

// priceOf is the price of the pod's part of the device for an hour, by currency,
// from the last hour with idle time.
func priceOf(of string) string {
	each := func(family, labels string) string {
		return `max by (` + holdLabels + labels + `) (rate(` + family + `{` + ofNamespace + `}[1h]))`
	}
	return `3600 * ` + each("accel_allocation_idle_cost_total", ", currency") + ` / ` + perHold + ` group_left () (` + each("accel_allocation_idle_seconds_total", "") + ` > 0) and ` + perHold + ` (` + of + `)`
}

// idleHolds has a row for each pod and device that is idle now.
func idleHolds() panel {
	of := func(name string) string { return `max by (` + holdLabels + `) (` + name + `{` + ofNamespace + `})` }
	idle := of("accel_allocation_idle_seconds") + ` > 0`
	alike := func(expr string) query {
		return query{expr: ofHolds(`(` + expr + `) and ` + perHold + ` (` + idle + `)`)}
	}
	fires := `(namespace_pod:accel_workload:info and on (cluster, namespace, workload) ALERTS{alertstate="firing",alertname="AllocationIdle",` + inSpace + `})`
	exempt := `group by (` + holdLabels + `) (accel_allocation_idle_seconds{namespace=~"` + idleExempt + `",` + ofNamespace + `} or accel_allocation_idle_seconds{` + ofNamespace + `} and ` + perPod + ` namespace_pod:accel_idle_permitted:info)`
	return panel{
		kind: listing, title: "Idle allocations", unit: "none", width: 24, height: 10, empty: "Nothing is idle, or no allocation is known",
		about: fmt.Sprintf("Each pod and device that is idle now; the device that saves most is first. Yellow from %d minutes on, when AllocationIdle fires for the workload of a pod that has worked before; orange from %d minutes on, when it fires for one that has not. exempt: by a label of the pod, by its namespace, or because it has ended. A price is that of the pod's part of the device.", idleAfter/60, neverUsedAfter/60) + ownerAbout,
		queries: []query{
			{expr: keep(host(named(inPool, withOwner(idle), "model", "profile")), "host, name, device, namespace, pod, model, profile, workload, owner")},
			alike(`1000 * ` + of("accel_allocation_last_activity_timestamp_seconds")),
			alike(of("accel_allocation_memory_used_bytes")),
			{expr: keep(host(priceOf(idle)), "host, device, namespace, pod, currency")},
			{expr: ofHolds(`730 * sum without (currency) (` + priceOf(idle) + `)`)},
			alike(of("accel_allocation_idle_cost_total")),
			alike(`2 * ` + exempt + ` or ` + perHold + ` (` + idle + ` and ` + perPod + ` ` + fires + `) ^ 0 or ` + perHold + ` 0 * ` + of("accel_allocation_idle_seconds")),
		},
		columns: []column{
			// What does not fit on a narrow screen is at the end.
			{of: "E", title: "Saves a month", unit: "none", width: 110, sort: true},
			namespaceColumn, podColumn,
			{of: "A", title: "Idle for", unit: "s", sort: true, width: 90, scale: &scale{none, []step{{idleAfter, yellow}, {neverUsedAfter, orange}}}},
			{of: "D", title: "Price an hour", unit: "none", width: 105},
			{of: "currency", title: "Currency", width: 74},
			{of: "G", title: "Alert", states: []state{{"0", "not yet", none}, {"1", "fires", orange}, {"2", "exempt", blue}}, width: 70},
			{of: "workload", title: "Workload"},
			{of: "owner", title: "Owner", width: 90},
			nodeColumn, nameColumn,
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 80},
			{of: "B", title: "Last activity", unit: "dateTimeFromNow", blank: "never", width: 120},
			{of: "C", title: "Memory", unit: "bytes", width: 75},
			{of: "F", title: "Cost so far", unit: "none", width: 90},
		},
	}
}

// underusedHolds has the pods that would do with less.
func underusedHolds() panel {
	use := `max by (` + holdLabels + `) (avg_over_time(accel_allocation_utilization_ratio{` + ofNamespace + `}[30m])) < ` + fmt.Sprint(underusedBelow) + ` unless ` + perHold + ` (accel_allocation_idle_seconds > 0)`
	return panel{
		kind: listing, title: "Underused allocations", unit: "none", width: 15, height: 10, empty: "No allocation is underused, or no use is measured",
		about: fmt.Sprintf("Pods with a mean use of a device below %.0f %% in the last 30 minutes that are not idle: candidates for a MIG device, for sharing, or for fewer replicas.", 100*underusedBelow) + ownerAbout,
		queries: []query{
			{expr: keep(host(named(inPool, withOwner(use), "model", "profile")), "host, name, device, namespace, pod, model, profile, workload, owner")},
			{expr: ofHolds(`max by (` + holdLabels + `) (accel_allocation_memory_used_bytes{` + ofNamespace + `}) / on (` + target + `, device) group_left () max by (` + target + `, device) (accel_memory_total_bytes{` + inPool + `}) and ` + perHold + ` (` + use + `)`)},
		},
		columns: []column{
			{of: "A", title: "Use", unit: "percentunit", width: 110, sortUp: true, gauge: true},
			{of: "B", title: "Memory", unit: "percentunit", width: 110, gauge: true},
			namespaceColumn, podColumn,
			{of: "workload", title: "Workload"},
			{of: "owner", title: "Owner", width: 90},
			nodeColumn, nameColumn,
			{of: "profile", title: "Profile", width: 80},
			{of: "model", title: "Model"},
		},
	}
}

func freeDevices() panel {
	const labels = "cluster, pool, model, profile"
	return panel{
		kind: listing, title: "Free devices", unit: "none", width: 9, height: 10, empty: noRules,
		about: "Healthy devices and partitions without a pod, and all of the kind. Free devices beside idle ones: nobody waits for them. Pods that wait although devices are free need another model or profile.",
		queries: []query{
			{expr: freeNow(labels)},
			{expr: `sum by (` + labels + `) (pool_model:accel_devices:count{` + inPool + `} or pool_profile:accel_partitions:count{` + inPool + `})`},
		},
		columns: []column{
			clusterColumn,
			{of: "pool", title: "Pool"},
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 80},
			{of: "A", title: "Free", width: 70, sort: true, scale: &scale{none, []step{{1, blue}}}},
			{of: "B", title: "All", width: 70},
		},
	}
}

func idleTrend() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Idle share of allocated time", unit: "percentunit", min: f(0), empty: noHolds,
			about:   "Share of the allocated time in which nothing ran: of the day, the week and the 30 days before each moment.",
			queries: []query{{idleShare("1d:2m"), "1 day"}, {idleShare("7d:2m"), "7 days"}, {idleShare("30d:2m"), "30 days"}},
			colours: []state{{value: "1 day", colour: plain}, {value: "7 days", colour: blue}, {value: "30 days", colour: purple}},
		}),
		third(panel{
			kind: lines, title: "Cost of idle time per day", unit: "none", decimals: f(0), min: f(0), empty: noPrices,
			about:   "Mean cost of a day, by currency: of the week and of the 30 days before each moment.",
			queries: []query{{`avg_over_time(sum by (currency) (` + idleCost + `)[7d:2m]) * 86400`, "7 days, {{currency}}"}, {`avg_over_time(sum by (currency) (` + idleCost + `)[30d:2m]) * 86400`, "30 days, {{currency}}"}},
		}),
		third(panel{
			kind: lines, title: "Idle devices by namespace", unit: "none", stacked: true, min: f(0), empty: noHolds,
			about:   "Allocations that were idle, for the ten namespaces with most. A value of one for a day is one wasted device day.",
			queries: []query{{`topk(10, sum by (namespace) (` + idleSeconds + `))`, "{{namespace}}"}},
			links:   []jump{*jumpTo("accel-workload", "This namespace", "namespace", "${__field.labels.namespace}")},
		}),
	}
}

func idleOwners() []panel {
	return []panel{
		third(panel{
			kind: ranking, title: "Idle device hours, most first", unit: "none", decimals: f(0), min: f(0), empty: "Nothing was idle, or the recording rules are not loaded",
			about:   "Hours for which devices were allocated and idle in the time range.",
			scale:   only(yellow),
			queries: []query{{`topk(10, sum_over_time(sum by (namespace) (` + idleSeconds + `)[$__range:1m])) / 60 > 0`, "{{namespace}}"}},
		}),
		third(panel{
			kind: ranking, title: "Cost of idle time in the time range, most first", unit: "none", decimals: f(0), min: f(0), empty: noPrices,
			about:   "Cost of the idle time in the time range, by namespace and currency.",
			scale:   only(yellow),
			queries: []query{{`topk(10, sum_over_time(sum by (namespace, currency) (` + idleCost + `)[$__range:1m])) * 60 > 0`, "{{namespace}} ({{currency}})"}},
		}),
		third(panel{
			kind: listing, title: "Workloads by idle share", unit: "none", empty: "No allocation, or the recording rules are not loaded",
			about:   "Controllers of the pods, from the API server or kube-state-metrics, else the pods themselves, and the share of the last hour in which their devices were idle.",
			queries: []query{{expr: keep(`topk(20, avg_over_time(workload:accel_allocation_idle:ratio_rate5m{cluster=~"$cluster",namespace=~"$namespace"}[1h]))`, "namespace, workload")}},
			columns: []column{namespaceColumn, {of: "workload", title: "Workload"}, {of: "A", title: "Idle", unit: "percentunit", sort: true, width: 80, scale: &scale{none, []step{{0.5, yellow}, {0.9, orange}}}}},
		}),
	}
}
