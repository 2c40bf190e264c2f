package main

// remediation shows what accel-remediator did, what it did not do and why, and
// whether it works.
func remediation() board {
	return board{
		uid: "accel-remediation", title: "Accelerators / Remediation", from: "now-6h",
		about:     "Nodes that accel-remediator has taken out, nodes that it leaves alone and why, and whether it works.",
		variables: []variable{datasource, cluster, remediatedPool},
		events:    []event{alerts(`alertname=~"AccelRemediator.*",`+inAnyPool, "")},
		rows: []row{
			{title: "Does it act, and on how much?", panels: remediationNow()},
			{title: "What is out", panels: []panel{nodesOut(), shareOut(), breakers()}},
			{title: "What is left alone", panels: []panel{withheldNow(), withheldCourse(), remediationAlerts()}},
			{title: "What it does", panels: remediationActions()},
			{title: "Does it see everything?", panels: remediationSight()},
		},
	}
}

const (
	noRemediator = "No accel-remediator is scraped"
	noPlan       = "No accel-remediator is scraped, or none has the lease"
	remediated   = `sum(accel_remediator_pool_nodes{` + inPool + `})`
)

var (
	remediatedPool = variable{
		name: "pool", label: "Pool", about: "Pools by the policy's pool_label; nodes without it are one pool.",
		query: `label_values(accel_remediator_pool_nodes{cluster=~"$cluster"}, pool)`, all: anything, several: true,
	}
	actStates    = []state{{"0", "dry run", blue}, {"1", "acts", green}}
	yesGood      = []state{{"0", "no", red}, {"1", "yes", green}}
	remedyColumn = column{of: "node", title: "Node", jump: toNode()}
	poolColumn   = column{of: "pool", title: "Pool"}
)

func remediationNow() []panel {
	orangeFrom := func(at float64) scale { return scale{green, []step{{at, orange}}} }
	return []panel{
		tile(panel{
			kind: number, title: "Mode", unit: "none", states: actStates, scale: only(blue), empty: noRemediator,
			about:   "Whether planned actions are performed. In a dry run they are only logged; --act performs them.",
			queries: []query{{expr: `max(accel_remediator_acting{` + inAnyPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Nodes out", unit: "none", scale: orangeFrom(1), empty: noPlan,
			about:   "Nodes that were taken out and not let in again.",
			queries: []query{{expr: `sum(accel_remediator_pool_nodes_out{` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Open breakers", unit: "none", scale: bad(1), empty: noPlan,
			about:   "Pools with so many failures at once that no further node is taken out. Look for a common cause. AccelRemediatorBreakerOpen.",
			queries: []query{{expr: `sum(accel_remediator_breaker_open{` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Left alone by a limit", unit: "none", scale: orangeFrom(1), empty: noPlan,
			about:   "Nodes that should be taken out and are not, because enough nodes are out, enough was done within the hour, or the breaker is open. AccelRemediatorNodeNeedsHands.",
			queries: []query{{expr: `sum(accel_remediator_withheld_nodes{reason=~"share|hour|breaker",` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Waiting for a person", unit: "none", scale: orangeFrom(1), empty: noPlan,
			about:   "Nodes that were taken out repeatedly and stay out until the annotation accel.health/inspect is removed. AccelRemediatorNodeNeedsHands.",
			queries: []query{{expr: zeroWhere(`count(accel_remediator_node_inspection_required{`+inPool+`})`, remediated)}},
		}),
		tile(panel{
			kind: number, title: "Last pass", unit: "s", scale: bad(300), empty: noPlan,
			about:   "Time since the last pass over alerts and nodes: the age of all values here. AccelRemediatorNotWorking fires where it is red.",
			queries: []query{{expr: `max(time() - accel_remediator_last_pass_timestamp_seconds{` + inAnyPool + `})`}},
		}),
	}
}

func nodesOut() panel {
	return third(panel{
		kind: listing, title: "Nodes that are out", unit: "none", empty: "No node is out",
		about: "Time since which each node is out, longest first, and whether it needs an inspection.",
		queries: []query{
			{expr: keep(`1000 * accel_remediator_node_out_timestamp_seconds{`+inPool+`}`, "pool, node")},
			{expr: keep(`accel_remediator_node_inspection_required{`+inPool+`}`, "pool, node")},
		},
		columns: []column{
			poolColumn, remedyColumn,
			{of: "A", title: "Since", unit: "dateTimeFromNow", sortUp: true, width: 110},
			{of: "B", title: "Inspect", width: 75, states: []state{{"1", "yes", orange}}},
		},
	})
}

func shareOut() panel {
	return third(panel{
		kind: lines, title: "Share of the pool that is out", unit: "percentunit", min: f(0), empty: noPlan,
		about:   "Nodes that are out as a share of the pool. The limit is limits.share of the policy.",
		queries: []query{{`sum by (cluster, pool) (accel_remediator_pool_nodes_out{` + inPool + `}) / sum by (cluster, pool) (accel_remediator_pool_nodes{` + inPool + `})`, "{{cluster}} {{pool}}"}},
	})
}

func breakers() panel {
	return third(panel{
		kind: timeline, title: "Breaker is open", unit: "none", states: yesBad, empty: noPlan,
		about:   "Times at which so much of a pool failed at once that no further node was taken out.",
		queries: []query{{`max by (cluster, pool) (accel_remediator_breaker_open{` + inPool + `})`, "{{cluster}} {{pool}}"}},
	})
}

func withheldNow() panel {
	return quarter(panel{
		kind: listing, title: "Nodes that are left alone", unit: "none", empty: "Every action that alerts require is done",
		about:   "Nodes for which alerts require an action that is not done, by pool and reason. hold: an annotation of an operator. suppressed: a silence, another alert, or the alert has just ended. /debug/plan lists the nodes.",
		queries: []query{{expr: `sum by (cluster, pool, reason) (accel_remediator_withheld_nodes{` + inPool + `}) > 0`}},
		columns: []column{clusterColumn, poolColumn, {of: "reason", title: "Reason"}, {of: "A", title: "Nodes", sort: true, width: 75}},
	})
}

func withheldCourse() panel {
	return quarter(panel{
		kind: lines, title: "Nodes left alone, by reason", unit: "none", stacked: true, min: f(0), empty: noPlan,
		about:   "The same over time. share and hour for a long time mean that more nodes fail than the limits permit.",
		queries: []query{{`sum by (reason) (accel_remediator_withheld_nodes{` + inPool + `})`, "{{reason}}"}},
		colours: []state{{value: "breaker", colour: red}, {value: "share", colour: orange}, {value: "hour", colour: yellow}, {value: "hold", colour: blue}, {value: "suppressed", colour: plain}},
	})
}

func remediationAlerts() panel {
	return half(panel{
		kind: listing, title: "Alerts on it", unit: "none", empty: noAlerts,
		about:   "Firing alerts on accel-remediator. A click on an alert opens its runbook. Alerts on accelerators are in *Fleet*.",
		queries: []query{{expr: keep(`1000 * ALERTS{alertstate="firing",alertname=~"AccelRemediator.*",`+inAnyPool+`} * ignoring (alertstate) ALERTS_FOR_STATE`, "severity, alertname, pool, node")}},
		columns: []column{
			{of: "severity", title: "Severity", states: severities, width: 80, sortUp: true},
			{of: "alertname", title: "Alert", jump: toRunbook(), width: 270},
			poolColumn, remedyColumn,
			{of: "A", title: "Since", unit: "dateTimeFromNow", width: 110},
		},
	})
}

func remediationActions() []panel {
	return []panel{
		third(panel{
			kind: bars, title: "Done", unit: "none", stacked: true, min: f(0), empty: noRemediator,
			about:   "Performed actions. None in a dry run.",
			queries: []query{{`sum by (action) (` + grew(`accel_remediator_actions_total{result="done",`+inAnyPool+`}`) + `)`, "{{action}}"}},
		}),
		third(panel{
			kind: bars, title: "Not done", unit: "none", stacked: true, min: f(0), empty: noRemediator,
			about: "Failed actions; AccelRemediatorNotWorking fires if it continues. refused: a disruption budget keeps a pod. conflict: the node had changed, and the action is repeated.",
			queries: []query{
				{`sum by (action) (` + grew(`accel_remediator_actions_total{result="error",`+inAnyPool+`}`) + `)`, "{{action}} fails"},
				{`sum by (result) (` + grew(`accel_remediator_actions_total{result=~"refused|conflict",`+inAnyPool+`}`) + `)`, "{{result}}"},
			},
		}),
		third(panel{
			kind: lines, title: "To be done", unit: "none", stacked: true, min: f(0), empty: noPlan,
			about:   "Planned actions by node. In a dry run, what would be done.",
			queries: []query{{`sum by (action) (accel_remediator_planned_nodes{` + inAnyPool + `})`, "{{action}}"}},
		}),
	}
}

func remediationSight() []panel {
	return []panel{
		third(panel{
			kind: timeline, title: "It can be relied upon", unit: "none", states: yesGood, empty: noRemediator,
			about: "Whether an Alertmanager answers, the policy of the file is in force, and exactly one process has the lease. Each of them has an alert.",
			queries: []query{
				{`min(accel_remediator_alerts_listed{` + inAnyPool + `})`, "Alertmanager answers"},
				{`min(accel_remediator_policy_last_reload_successful{` + inAnyPool + `})`, "policy is the file's"},
				{`min(sum by (cluster) (accel_remediator_leader{` + inAnyPool + `}) == bool 1)`, "one has the lease"},
			},
		}),
		third(panel{
			kind: lines, title: "Time of a pass", unit: "s", min: f(0), empty: noPlan,
			about:   "How long the last pass took. It is aborted after a minute; near that, the API server is slow.",
			queries: []query{{`max(accel_remediator_last_pass_duration_seconds{` + inAnyPool + `})`, "last pass"}},
		}),
		third(panel{
			kind: lines, title: "Failed passes and unknown nodes", unit: "none", min: f(0), empty: noPlan,
			about: "Passes that could not list the nodes, and nodes in alerts that are not in the cluster: mostly a wrong label. AccelRemediatorMisconfigured.",
			queries: []query{
				{`sum(` + grew(`accel_remediator_failed_passes_total{`+inAnyPool+`}`) + `)`, "failed passes"},
				{`max(accel_remediator_unknown_nodes{` + inAnyPool + `})`, "unknown nodes"},
			},
		}),
	}
}
