package main

// workload shows the owner of a service which devices the pods have, whether they
// use them, and whether hardware faults affected them.
func workload() board {
	return board{
		uid: "accel-workload", title: "Accelerators / Namespace and workload", from: "now-6h",
		about:     "For the owners of services: the devices of their pods, their use, their cost, and hardware faults that affected them.",
		variables: []variable{datasource, cluster, namespace, pods},
		events:    []event{workloadEvent(), hits()},
		rows: []row{
			{title: "How are my pods?", panels: workloadNow()},
			{title: "Pods", panels: []panel{workloadPods(), whole(incidentsOf(hurtPods, "")), workloadHits(), workloadAlerts()}},
			{title: "Use", panels: workloadUse()},
			{title: "Workloads", panels: []panel{workloadOwners(), workloadStart()}},
		},
	}
}

var pods = variable{
	name: "pod", label: "Pod", about: "Pods with a device.",
	query: `label_values(accel_allocation_info{cluster=~"$cluster",namespace=~"$namespace"}, pod)`, all: anything, several: true,
}

const (
	inSpace = `cluster=~"$cluster",namespace=~"$namespace"`
	inPods  = inSpace + `,pod=~"$pod"`
	noPods  = "No pod of this selection has a device"
	anyPod  = `count(accel_allocation_info{` + inPods + `})`
	// hurtPods is the incidents that name a pod.
	hurtPods = `cluster=~"$cluster",pods=~"(.* )?$namespace/$pod( .*)?"`
	// Alerts are on pods and workloads, or on devices, whose incidents name the pods.
	withWorkload = inSpace + `,namespace!="",pod=~"$pod|"`
	withDevice   = inAnyPool + `,namespace="",device!=""`
	thatHurt     = ` and on (cluster, node, device) accel_device_incident_timestamp_seconds{` + hurtPods + `}`
)

func workloadEvent() event {
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

func workloadNow() []panel {
	return []panel{
		tile(panel{
			kind: number, title: "Devices allocated", unit: "none", scale: only(blue), empty: noPods,
			about:   "Devices and partitions that are allocated to the pods.",
			queries: []query{{expr: anyPod}},
		}),
		tile(panel{
			kind: number, title: "Use", unit: "percentunit", decimals: f(0), scale: only(blue), empty: "Not measured on these devices",
			about:   "Mean share of time in which the pods had a kernel running. If low, fewer or smaller devices are enough.",
			queries: []query{{expr: `avg(accel_allocation_utilization_ratio{` + inPods + `})`}},
		}),
		tile(panel{
			kind: number, title: "Idle now", unit: "none", scale: scale{green, []step{{1, yellow}}}, empty: noPods,
			about:   "Allocated devices on which nothing runs.",
			queries: []query{{expr: zeroWhere(`count(accel_allocation_idle_seconds{`+inPods+`} > 0)`, `count(accel_allocation_idle_seconds{`+inPods+`})`)}},
			links:   []jump{*jumpTo("accel-idle", "Waste", "namespace", "${namespace:queryparam}")},
		}),
		tile(panel{
			kind: number, title: "On devices in trouble", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noPods,
			about:   "Pods with a degraded or failed device, or a partition of one.",
			queries: []query{{expr: zeroWhere(podsOnSick(inPods), anyPod)}},
		}),
		tile(panel{
			kind: number, title: "Hit by a fault", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noPods,
			about:   "Pods that a hardware fault hit within the last hour. They did not cause it: restart them on other devices.",
			queries: []query{{expr: zeroWhere(`count(group by (cluster, namespace, pod) (accel_allocation_fault_age_seconds{`+inPods+`} < 3600))`, anyPod)}},
		}),
		tile(panel{
			kind: number, title: "Cost of idle time", unit: "none", decimals: f(2), both: true, scale: only(blue), empty: noPrices,
			about:   "Cost of the idle time of the pods since their start, by currency.",
			queries: []query{{`sum by (currency) (accel_allocation_idle_cost_total{` + inPods + `})`, "{{currency}}"}},
		}),
	}
}

func workloadPods() panel {
	of := func(name string) query {
		return query{expr: keep(host(named(inAnyPool, `max by (`+target+`, device, namespace, pod) (`+name+`{`+inPods+`})`, "model", "profile")), "namespace, pod, host, name, device, model, profile")}
	}
	return panel{
		kind: listing, title: "Devices of each pod", unit: "none", width: 24, height: 9, empty: noPods,
		about:   "One row for each pod and device. An empty cell means not measured: the power of partitions and shared devices is not measured.",
		queries: []query{of("accel_allocation_utilization_ratio"), of("accel_allocation_memory_used_bytes"), of("accel_allocation_power_watts"), of("accel_allocation_idle_seconds"), of("accel_allocation_seconds_total")},
		columns: []column{
			namespaceColumn, podColumn, nodeColumn, nameColumn,
			{of: "model", title: "Model"},
			{of: "profile", title: "Profile", width: 80},
			{of: "A", title: "Use", unit: "percentunit", width: 70},
			{of: "B", title: "Memory", unit: "bytes", width: 90},
			{of: "C", title: "Power", unit: "watt", width: 75},
			{of: "D", title: "Idle for", unit: "s", width: 90, sort: true, scale: &scale{none, []step{{idleAfter, yellow}}}},
			{of: "E", title: "Allocated for", unit: "s", width: 110},
		},
	}
}

func workloadHits() panel {
	return panel{
		kind: listing, title: "Faults that hit pods", unit: "none", width: 8, height: 8, empty: "No fault has hit a pod in the last hour",
		about:   "Faults of devices while they were allocated to the pod, including faults after which the pod ended. docs/health.md explains xid_N.",
		queries: []query{{expr: keep(host(named(inAnyPool, `1000 * max by (`+target+`, device, namespace, pod, fault) (accel_allocation_fault_timestamp_seconds{`+inPods+`})`)), "namespace, pod, fault, host, name, device")}},
		columns: []column{namespaceColumn, podColumn, {of: "fault", title: "Fault"}, {of: "A", title: "When", unit: "dateTimeFromNow", sort: true, width: 110}},
	}
}

func workloadAlerts() panel {
	p := firingAlerts(firing(withWorkload) + " or " + firing(withDevice) + thatHurt)
	p.width, p.height = 16, 8
	return p
}

func workloadUse() []panel {
	return []panel{
		quarter(panel{
			kind: lines, title: "Use by pod", unit: "percentunit", min: f(0), max: f(1), empty: noPods,
			about:   "Mean over the pod's devices of the share of time in which it had a kernel running, smoothed over three minutes, as autoscalers read it.",
			queries: []query{{`namespace_pod:accel_utilization:avg_over_3m{` + inPods + `}`, "{{namespace}}/{{pod}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Device memory by pod", unit: "bytes", min: f(0), stacked: true, empty: noPods,
			about:   "Memory that the pod has allocated on its devices. Frameworks allocate it in advance.",
			queries: []query{{`namespace_pod:accel_memory_used_bytes:sum{` + inPods + `}`, "{{namespace}}/{{pod}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Power by pod", unit: "watt", min: f(0), stacked: true, empty: "No pod has an exclusive whole device",
			about:   "Power of exclusive devices. The power of partitions and shared devices is not measured.",
			queries: []query{{`sum by (namespace, pod) (accel_allocation_power_watts{` + inPods + `})`, "{{namespace}}/{{pod}}"}},
		}),
		quarter(panel{
			kind: lines, title: "Idle devices by pod", unit: "none", min: f(0), stacked: true, empty: noPods,
			about:   "Devices of the pod on which nothing ran, on average over five minutes.",
			queries: []query{{`sum by (namespace, pod) (namespace_pod:accel_allocation_idle_seconds:rate5m{` + inPods + `})`, "{{namespace}}/{{pod}}"}},
		}),
	}
}

func workloadOwners() panel {
	of := func(reduce, family string) query {
		return query{expr: keep(reduce+` by (cluster, namespace, workload) (`+family+`{`+inSpace+`} * `+perPod+` group_left (workload) namespace_pod:accel_workload:info)`, "namespace, workload")}
	}
	return half(panel{
		kind: listing, title: "Workloads", unit: "none", empty: "No pod has a device, or the recording rules are not loaded",
		about:   "Controllers of the pods, from the API server or kube-state-metrics, else the pods themselves: their devices, the use now and the idle share of the last hour.",
		queries: []query{of("count", "accel_allocation_info"), of("avg", "accel_allocation_utilization_ratio"), {expr: keep(`avg_over_time(workload:accel_allocation_idle:ratio_rate5m{`+inSpace+`}[1h])`, "namespace, workload")}},
		columns: []column{namespaceColumn, {of: "workload", title: "Workload"}, {of: "A", title: "Devices", sort: true, width: 80}, {of: "B", title: "Use", unit: "percentunit", width: 70}, {of: "C", title: "Idle", unit: "percentunit", width: 70, scale: &scale{none, []step{{0.5, yellow}, {0.9, orange}}}}},
	})
}

func workloadStart() panel {
	return half(panel{
		kind: lines, title: "From allocation to first activity", unit: "s", min: f(0), empty: "No pod has begun to use a device in this time",
		about:   "95th percentile in the time range, including image pulls and model loading, by resource of the whole cluster. If long, devices wait for pods.",
		queries: []query{{`histogram_quantile(0.95, sum by (resource, le) (rate(accel_allocation_first_activity_seconds_bucket{cluster=~"$cluster"}[$__range]))) >= 0`, "{{resource}}"}},
	})
}
