package main

import "fmt"

const (
	ofNamespace = inPool + `,namespace=~"$namespace"`
	perHold     = "on (" + target + ", device, namespace, pod)"
)

// idle shows which pods do not use their devices, since when, and the cost.
func idle(v *values) board {
	return board{
		uid: "accel-idle", title: "Accelerators / Idle allocations", from: "now-24h",
		about:     "Pods that do not use their devices, since when, and what it costs.",
		variables: []variable{datasource, cluster, pool, namespace},
		rows: []row{
			{title: "How much is wasted?", panels: idleNow()},
			{title: "Who, and since when?", panels: []panel{idleHolds(v)}},
			{title: "Trend", panels: idleTrend()},
			{title: "Namespaces and workloads", panels: idleOwners()},
		},
	}
}

const (
	heldSeconds = `namespace:accel_allocation_seconds:rate5m{` + ofNamespace + `}`
	idleSeconds = `namespace:accel_allocation_idle_seconds:rate5m{` + ofNamespace + `}`
	idleCost    = `namespace:accel_allocation_idle_cost:rate5m{` + ofNamespace + `}`
	noHolds     = "No allocation, or the recording rules are not loaded"
	noPrices    = "No prices are configured, or nothing is idle"
)

func idleNow() []panel {
	return []panel{
		wideTile(panel{
			kind: number, title: "Idle devices", unit: "none", decimals: f(1), empty: noHolds,
			about:   "Allocations that were idle in the last five minutes, on average. A part of a device counts as one.",
			scale:   scale{green, []step{{1, yellow}}},
			queries: []query{{expr: `sum(` + idleSeconds + `)`}},
		}),
		wideTile(panel{
			kind: number, title: "Idle share of allocated time", unit: "percentunit", decimals: f(0), empty: noHolds,
			about:   "Share of the allocated time in which nothing ran, over the time range.",
			scale:   scale{green, []step{{0.25, yellow}, {0.5, orange}}},
			queries: []query{{expr: `sum(sum_over_time(` + idleSeconds + `[$__range])) / sum(sum_over_time(` + heldSeconds + `[$__range]))`}},
		}),
		wideTile(panel{
			kind: number, title: "Device hours lost", unit: "none", decimals: f(1), empty: noHolds,
			about:   "Hours for which devices were allocated and idle, in the time range.",
			scale:   only(blue),
			queries: []query{{expr: `sum(sum_over_time(` + idleSeconds + `[$__range:1m])) / 60`}},
		}),
		wideTile(panel{
			kind: number, title: "Cost of idle time", unit: "none", decimals: f(2), both: true, empty: noPrices,
			about:   "Cost of the idle time in the time range, by currency. Needs prices in the exporter's configuration.",
			scale:   only(blue),
			queries: []query{{`sum by (currency) (sum_over_time(` + idleCost + `[$__range:1m])) * 60`, "{{currency}}"}},
		}),
	}
}

// idleHolds joins by pod and device, so that each allocation is one row.
func idleHolds(v *values) panel {
	held := func(expr string) string {
		return keep(host(named(inPool, keep(expr, target+", device, namespace, pod"))), "host, name, device, namespace, pod")
	}
	idle := `accel_allocation_idle_seconds{` + ofNamespace + `} > 0`
	warn, bad := v.number("idle_seconds"), v.number("never_used_seconds")
	return panel{
		kind: listing, title: "Idle allocations", unit: "none", width: 24, height: 12, empty: "Every allocated device is used",
		about: fmt.Sprintf("Each pod whose device is idle now. Yellow from %.0f minutes on, when AllocationIdle fires for a pod that has worked before; orange from %.0f minutes on, when AllocationNeverUsed fires for one that has not. Without a last activity it has never been active since it was first observed. Pods that are exempt from the alerts are listed too.", warn/60, bad/60),
		queries: []query{
			{expr: held(idle)},
			{expr: held(`1000 * (accel_allocation_last_activity_timestamp_seconds{` + ofNamespace + `} and ` + perHold + ` (` + idle + `))`)},
			{expr: held(`accel_allocation_memory_used_bytes{` + ofNamespace + `} and ` + perHold + ` (` + idle + `)`)},
			{expr: held(`accel_allocation_idle_cost_total{` + ofNamespace + `} and ` + perHold + ` (` + idle + `)`)},
		},
		columns: []column{
			namespaceColumn, podColumn, nodeColumn, nameColumn, idColumn,
			{of: "A", title: "Idle for", unit: "s", sort: true, scale: &scale{none, []step{{warn, yellow}, {bad, orange}}}},
			{of: "B", title: "Last activity", unit: "dateTimeFromNow"},
			{of: "C", title: "Memory used", unit: "bytes"},
			{of: "D", title: "Idle cost so far", unit: "none"},
		},
	}
}

func idleTrend() []panel {
	return []panel{
		half(panel{
			kind: lines, title: "Idle devices by namespace", unit: "none", stacked: true, min: f(0), empty: noHolds,
			about:   "Allocations that were idle, for the ten namespaces with most. A value of one for a day is one wasted device day.",
			queries: []query{{`topk(10, sum by (namespace) (` + idleSeconds + `))`, "{{namespace}}"}},
			links:   []jump{*jumpTo("accel-workload", "This namespace", "namespace", "${__field.labels.namespace}")},
		}),
		half(panel{
			kind: lines, title: "Idle share of allocated time", unit: "percentunit", min: f(0), max: f(1), empty: noHolds,
			about:   "Share of the allocated time of the namespace in which nothing ran. For the ten namespaces with most idle devices.",
			queries: []query{{`sum by (namespace) (` + idleSeconds + `) / sum by (namespace) (` + heldSeconds + `) and topk(10, sum by (namespace) (` + idleSeconds + `))`, "{{namespace}}"}},
		}),
	}
}

func idleOwners() []panel {
	return []panel{
		third(panel{
			kind: ranking, title: "Idle devices, most first", unit: "none", decimals: f(1), min: f(0), empty: "Nothing was idle, or the recording rules are not loaded",
			about:   "Mean number of idle allocations in the time range.",
			scale:   only(yellow),
			queries: []query{{`topk(10, sum by (namespace) (sum_over_time(` + idleSeconds + `[$__range:1m]))) * 60 / $__range_s >= 0.01`, "{{namespace}}"}},
		}),
		third(panel{
			kind: ranking, title: "Cost of idle time per day, most first", unit: "none", decimals: f(2), min: f(0), empty: noPrices,
			about:   "What the idle time of the last five minutes would cost in a day, by namespace and currency.",
			scale:   only(yellow),
			queries: []query{{`topk(10, sum by (namespace, currency) (` + idleCost + `)) * 86400 >= 0.01`, "{{namespace}} ({{currency}})"}},
		}),
		third(panel{
			kind: listing, title: "Workloads by idle share", unit: "none", empty: "No workload is known: kube-state-metrics is needed",
			about:   "Controllers of the pods, as Deployments' ReplicaSets, StatefulSets and Jobs, and the share of the last hour in which their devices were idle. Needs kube-state-metrics.",
			queries: []query{{expr: keep(`topk(20, workload:accel_allocation_idle:ratio_rate1h{cluster=~"$cluster",namespace=~"$namespace"})`, "namespace, owner_kind, owner_name")}},
			columns: []column{namespaceColumn, {of: "owner_kind", title: "Kind"}, {of: "owner_name", title: "Workload"}, {of: "A", title: "Idle", unit: "percentunit", sort: true, width: 80, scale: &scale{none, []step{{0.5, yellow}, {0.9, orange}}}}},
		}),
	}
}
