package main

// remediation answers: what did accel-remediator take out, what does it leave
// alone and why, and can it be relied upon.
func remediation(v *values) board {
	return board{
		uid: "accel-remediation", title: "Accelerators / Remediation", from: "now-6h",
		about:     "What accel-remediator has taken out, what it leaves alone and why, and whether it sees and does what it ought to.",
		variables: []variable{datasource, cluster, remediatedPool},
		events:    []event{alerts(`alertname=~"AccelRemediator.*",` + inAnyPool)},
		rows: []row{
			{title: "Does it act, and on how much?", panels: remediationNow(v)},
			{title: "What is out", panels: []panel{nodesOut(), shareOut(), breakers()}},
			{title: "What is left alone", panels: []panel{withheldNow(), withheldCourse(), remediationAlerts()}},
			{title: "What it does", panels: remediationActions()},
			{title: "Does it see what it ought to?", panels: remediationSight()},
		},
	}
}

const (
	noRemediator = "No accel-remediator is scraped"
	noPlan       = "No accel-remediator is scraped, or none holds the lease"
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

func remediationNow(v *values) []panel {
	orangeFrom := func(at float64) scale { return scale{green, []step{{at, orange}}} }
	return []panel{
		tile(panel{
			kind: number, title: "Mode", unit: "none", states: actStates, scale: only(blue), empty: noRemediator,
			about:   "Whether what is planned is done. In a dry run it is only told; --act ends that.",
			queries: []query{{expr: `max(accel_remediator_acting{` + inAnyPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Nodes out", unit: "none", scale: orangeFrom(1), empty: noPlan,
			about:   "Nodes that were taken out and are not let in again yet.",
			queries: []query{{expr: `sum(accel_remediator_pool_nodes_out{` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Pools with an open breaker", unit: "none", scale: bad(1), empty: noPlan,
			about:   "Pools of which so much fails at once that nothing new is done there. Look for one cause. AccelRemediatorBreakerOpen.",
			queries: []query{{expr: `sum(accel_remediator_breaker_open{` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Left alone by a limit", unit: "none", scale: orangeFrom(1), empty: noPlan,
			about:   "Nodes that ought to be taken out and are not, because enough is out, enough was done within the hour, or the breaker is open. AccelRemediatorNodesWithheld.",
			queries: []query{{expr: `sum(accel_remediator_withheld_nodes{reason=~"share|hour|breaker",` + inPool + `})`}},
		}),
		tile(panel{
			kind: number, title: "Waiting for a person", unit: "none", scale: orangeFrom(1), empty: noPlan,
			about:   "Nodes that were taken out time and again and stay out until somebody removes the annotation accel.health/inspect. AccelRemediatorInspectionRequired.",
			queries: []query{{expr: zeroWhere(`count(accel_remediator_node_inspection_required{`+inPool+`})`, remediated)}},
		}),
		tile(panel{
			kind: number, title: "Last pass", unit: "s", scale: bad(v.number("remediator_pass_age_seconds")), empty: noPlan,
			about:   "How long ago it has last looked at alerts and nodes. Everything here is as old. AccelRemediatorStalled fires where it is red.",
			queries: []query{{expr: `max(time() - accel_remediator_last_pass_timestamp_seconds{` + inAnyPool + `})`}},
		}),
	}
}

func nodesOut() panel {
	return third(panel{
		kind: listing, title: "Nodes that are out", unit: "none", empty: "No node is out",
		about: "Since when each node is out, the longest first, and whether it waits for a person to inspect it.",
		queries: []query{
			{expr: `1000 * max by (pool, node) (accel_remediator_node_out_timestamp_seconds{` + inPool + `})`},
			{expr: `max by (pool, node) (accel_remediator_node_inspection_required{` + inPool + `})`},
		},
		columns: []column{
			poolColumn, remedyColumn,
			{of: "A", title: "Since", unit: "dateTimeFromNow", sortUp: true, width: 130},
			{of: "B", title: "Inspect", width: 75, states: []state{{"1", "yes", orange}}},
		},
	})
}

func shareOut() panel {
	return third(panel{
		kind: lines, title: "Share of the pool that is out", unit: "percentunit", min: f(0), empty: noPlan,
		about:   "Nodes that are out as a share of the pool. It ends at limits.share of the policy.",
		queries: []query{{`sum by (pool) (accel_remediator_pool_nodes_out{` + inPool + `}) / sum by (pool) (accel_remediator_pool_nodes{` + inPool + `})`, "pool {{pool}}"}},
	})
}

func breakers() panel {
	return third(panel{
		kind: timeline, title: "Breaker is open", unit: "none", states: yesBad, empty: noPlan,
		about:   "When so much of a pool failed at once that nothing new was done there.",
		queries: []query{{`max by (pool) (accel_remediator_breaker_open{` + inPool + `})`, "pool {{pool}}"}},
	})
}

func withheldNow() panel {
	return quarter(panel{
		kind: listing, title: "Why nodes are left alone", unit: "none", empty: "Nothing that alerts ask for is left undone",
		about:   "Nodes for which alerts ask for something that is not done, by pool and reason. hold: a person's annotation. suppressed: a silence, another alert, or the alert has just gone. /debug/plan names them.",
		queries: []query{{expr: `sum by (pool, reason) (accel_remediator_withheld_nodes{` + inPool + `}) > 0`}},
		columns: []column{poolColumn, {of: "reason", title: "Reason"}, {of: "A", title: "Nodes", sort: true, width: 75}},
	})
}

func withheldCourse() panel {
	return quarter(panel{
		kind: lines, title: "Nodes left alone, by reason", unit: "none", stacked: true, min: f(0), empty: noPlan,
		about:   "The same over time. share and hour for long: more fails than the limits let go.",
		queries: []query{{`sum by (reason) (accel_remediator_withheld_nodes{` + inPool + `})`, "{{reason}}"}},
		colours: []state{{value: "breaker", colour: red}, {value: "share", colour: orange}, {value: "hour", colour: yellow}, {value: "hold", colour: blue}, {value: "suppressed", colour: plain}},
	})
}

func remediationAlerts() panel {
	return half(panel{
		kind: listing, title: "Alerts on it", unit: "none", empty: noAlerts,
		about:   "Alerts on accel-remediator that fire. A click on one opens its runbook. Those on accelerators are in *Fleet*.",
		queries: []query{{expr: `1000 * max by (severity, alertname, pool, node) (ALERTS{alertstate="firing",alertname=~"AccelRemediator.*",` + inAnyPool + `} * ignoring (alertstate) ALERTS_FOR_STATE)`}},
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
			about:   "What was done, by action. Nothing in a dry run.",
			queries: []query{{`sum by (action) (increase(accel_remediator_actions_total{result="done",` + inAnyPool + `}[$__rate_interval]))`, "{{action}}"}},
		}),
		third(panel{
			kind: bars, title: "Not done", unit: "none", stacked: true, min: f(0), empty: noRemediator,
			about: "What was tried and failed, by action; AccelRemediatorActionsFailing where it goes on. refused: a disruption budget keeps a pod. conflict: the node had changed, and it is done again.",
			queries: []query{
				{`sum by (action) (increase(accel_remediator_actions_total{result="error",` + inAnyPool + `}[$__rate_interval]))`, "{{action}} fails"},
				{`sum by (result) (increase(accel_remediator_actions_total{result=~"refused|conflict",` + inAnyPool + `}[$__rate_interval]))`, "{{result}}"},
			},
		}),
		third(panel{
			kind: lines, title: "To be done", unit: "none", stacked: true, min: f(0), empty: noPlan,
			about:   "Nodes to which something is to be done, by action. In a dry run, what it would do.",
			queries: []query{{`sum by (action) (accel_remediator_planned_nodes{` + inAnyPool + `})`, "{{action}}"}},
		}),
	}
}

func remediationSight() []panel {
	return []panel{
		third(panel{
			kind: timeline, title: "It can be relied upon", unit: "none", states: yesGood, empty: noRemediator,
			about: "Whether an Alertmanager answers, the policy is that of the file, and exactly one process holds the lease. No to any of them has an alert.",
			queries: []query{
				{`min(accel_remediator_alerts_listed{` + inAnyPool + `})`, "Alertmanager answers"},
				{`min(accel_remediator_policy_last_reload_successful{` + inAnyPool + `})`, "policy is the file's"},
				{`min(sum by (cluster) (accel_remediator_leader{` + inAnyPool + `}) == bool 1)`, "one holds the lease"},
			},
		}),
		third(panel{
			kind: lines, title: "Time of a pass", unit: "s", min: f(0), empty: noPlan,
			about:   "How long the last pass took. It is given up after a minute; near that, the API server is slow.",
			queries: []query{{`max(accel_remediator_last_pass_duration_seconds{` + inAnyPool + `})`, "last pass"}},
		}),
		third(panel{
			kind: lines, title: "Failed passes and unknown nodes", unit: "none", min: f(0), empty: noPlan,
			about: "Passes that could not list the nodes, and nodes that alerts name and the cluster does not have: mostly a wrong label. AccelRemediatorUnknownNodes.",
			queries: []query{
				{`sum(increase(accel_remediator_failed_passes_total{` + inAnyPool + `}[$__rate_interval]))`, "failed passes"},
				{`max(accel_remediator_unknown_nodes{` + inAnyPool + `})`, "unknown nodes"},
			},
		}),
	}
}
