package main

const (
	noRemediator = "No accel-remediator is scraped"
	noPlan       = "No accel-remediator has the lease"
)

func remediationNow() []panel {
	return tiles(
		panel{
			title: "Mode", states: []state{{"0", "dry run", blue}, {"1", "acts", green}, {"0.5", "differs", orange}}, scale: only(blue), empty: noRemediator,
			about:   "Whether planned actions are performed. In a dry run they are only logged; --act performs them. It may differ between clusters.",
			queries: []query{{expr: `(max(accel_remediator_acting{` + inAny + `}) + min(accel_remediator_acting{` + inAny + `})) / 2`}},
		},
		panel{
			title: "Nodes and devices out", scale: upFrom(1, orange), empty: noPlan,
			about:   "Nodes, and single devices of nodes, that were taken out and not let in again. Listed below.",
			queries: []query{{expr: `sum(accel_remediator_pool_nodes_out{` + inAny + `} + accel_remediator_pool_devices_out{` + inAny + `})`}},
		},
		panel{
			title: "Left alone", scale: upFrom(1, orange), empty: noPlan,
			about:   "Nodes and devices for which alerts require an action that is not done, or that wait for their return. AccelRemediatorNodeNeedsHands. Listed below by pool and reason.",
			queries: []query{{expr: `sum(accel_remediator_withheld_nodes{` + inAny + `})`}},
		},
		panel{
			title: "Last pass", unit: "s", scale: bad(300), empty: noPlan,
			about:   "Time since the last pass over alerts and nodes: the age of all values here. AccelRemediatorNotWorking fires where it is red.",
			queries: []query{{expr: `max(time() - accel_remediator_last_pass_timestamp_seconds{` + inAny + `})`}},
		},
	)
}

func nodesOut() panel {
	return half(panel{
		kind: listing, title: "Nodes and devices that are out", empty: "No node or device is out, or no accel-remediator has the lease",
		about: "Time since which each node, or the device of it that is named, is out, longest first, and whether it needs an inspection.",
		queries: []query{
			{expr: keep(host(`1000 * accel_remediator_node_out_timestamp_seconds{`+inAny+`}`), "pool, host, device")},
			{expr: keep(host(`accel_remediator_node_inspection_required{`+inAny+`}`), "pool, host, device")},
		},
		columns: []column{
			poolColumn, nodeColumn,
			{of: "device", title: "Device"},
			{of: "A", title: "Since", unit: "dateTimeFromNow", sortUp: true, width: 130},
			{of: "B", title: "Inspect", width: 75, states: []state{{"1", "yes", orange}}},
		},
	})
}

func withheldNow() panel {
	return half(panel{
		kind: listing, title: "Nodes and devices that are left alone", empty: "Every action that alerts require is done, or no accel-remediator has the lease",
		about:   "Nodes and devices for which alerts require an action that is not done, or that wait for their return, by pool and reason. share, hour, pace, breaker: a limit of the policy. hold: an annotation of an operator. suppressed: a silence, another alert, or the alert has just ended. exporter, source, device: no proof that the devices are healthy. docs/remediator.md explains each; /debug/plan has what is missing.",
		queries: []query{{expr: `sum by (cluster, pool, reason) (accel_remediator_withheld_nodes{` + inAny + `}) > 0`}},
		columns: []column{clusterColumn, poolColumn, {of: "reason", title: "Reason"}, {of: "A", title: "Number", sort: true, width: 75}},
	})
}

func remediationActions() panel {
	return half(panel{
		kind: bars, title: "Actions by result", stacked: true, min: f(0), empty: "No action in this time, or no accel-remediator is scraped",
		about:   "Performed and failed actions; AccelRemediatorNotWorking fires if failures continue. None in a dry run. refused: a disruption budget keeps a pod. conflict: the node had changed, and the action is repeated.",
		queries: []query{{`sum by (result) (` + grew(`accel_remediator_actions_total{`+inAny+`}`) + ` > 0)`, "{{result}}"}},
		colours: []state{{value: "done", colour: green}, {value: "error", colour: red}, {value: "refused", colour: orange}, {value: "conflict", colour: yellow}},
	})
}

func remediationWorks() panel {
	return half(panel{
		kind: timeline, title: "It can be relied upon", states: []state{{"0", "no", red}, {"1", "yes", green}}, empty: noRemediator,
		about: "Whether an Alertmanager answers, the policy of the file is in force, exactly one process has the lease, and every node in alerts is known. Each of them has an alert.",
		queries: []query{
			{`min by (cluster) (accel_remediator_alerts_listed{` + inAny + `})`, "{{cluster}} Alertmanager answers"},
			{`min by (cluster) (accel_remediator_policy_last_reload_successful{` + inAny + `})`, "{{cluster}} policy is the file's"},
			{`sum by (cluster) (accel_remediator_leader{` + inAny + `}) == bool 1`, "{{cluster}} one has the lease"},
			{`max by (cluster) (accel_remediator_unknown_nodes{` + inAny + `}) == bool 0`, "{{cluster}} nodes are known"},
		},
	})
}
