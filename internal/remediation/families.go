package remediation

import (
	"math"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	boolean   = collector.Range{Min: 0, Max: 1}
	count     = collector.Range{Min: 0, Max: math.MaxInt64}
	timestamp = collector.Range{Min: 0, Max: 1 << 40}
)

// Families of accel-remediator. A row is the only place where a name is
// written; docs/metrics.md is made of it. Those of the plan are absent until
// a first pass has made one: a process that does not lead knows nothing.
var (
	actionsTotal = &collector.Metric{
		Name:   "accel_remediator_actions_total",
		Help:   "What was done to nodes and pods since the process started, by how it ended.",
		Kind:   collector.Counter,
		Labels: []string{"action", "result"},
		Range:  count,
		Values: []string{
			"action: take_out, mark (what stands on a node that is out is changed), let_in, condition, event, evict, call (of a hook)",
			"result: done, refused (by a disruption budget), conflict (the node had changed; done again), error",
		},
	}
	withheldNodes = &collector.Metric{
		Name:   "accel_remediator_withheld_nodes",
		Help:   "Nodes of the pool for which alerts ask for something that is not done now, by the reason.",
		Kind:   collector.Gauge,
		Labels: []string{"pool", "reason"},
		Range:  count,
		Values: []string{"reason: hold (a person's annotation), suppressed (a silence, another alert, or the alert has just gone), share (enough of the pool is out), hour (enough was taken out within the hour), breaker"},
	}
	plannedNodes = &collector.Metric{
		Name:   "accel_remediator_planned_nodes",
		Help:   "Nodes to which something is to be done now, by the last pass. In a dry run it stays undone; else it is done by the next pass.",
		Kind:   collector.Gauge,
		Labels: []string{"action"},
		Range:  count,
		Values: []string{"action: take_out, mark, let_in, evict (as long as the alert fires that names the pod), call"},
	}
	poolNodes = &collector.Metric{
		Name:   "accel_remediator_pool_nodes",
		Help:   "Nodes of the pool: of one value of the label that the policy's pool_label names, empty for nodes without it.",
		Kind:   collector.Gauge,
		Labels: []string{"pool"},
		Range:  count,
	}
	poolNodesOut = &collector.Metric{
		Name:   "accel_remediator_pool_nodes_out",
		Help:   "Nodes of the pool that are taken out.",
		Kind:   collector.Gauge,
		Labels: []string{"pool"},
		Range:  count,
	}
	breakerOpen = &collector.Metric{
		Name:   "accel_remediator_breaker_open",
		Help:   "1 while so much of the pool fails at once that nothing new is done there.",
		Kind:   collector.Gauge,
		Labels: []string{"pool"},
		Range:  boolean,
	}
	nodeOut = &collector.Metric{
		Name:   "accel_remediator_node_out_timestamp_seconds",
		Help:   "When the node was taken out, seconds since the epoch; absent for nodes that are in. Of a thousand nodes at most.",
		Kind:   collector.Mark,
		Labels: []string{"pool", "node"},
		Range:  timestamp,
	}
	nodeInspection = &collector.Metric{
		Name:   "accel_remediator_node_inspection_required",
		Help:   "1 where the node was taken out so often that it stays out until a person removes the annotation accel.health/inspect; absent for others. Of a thousand nodes at most.",
		Kind:   collector.Gauge,
		Labels: []string{"pool", "node"},
		Range:  boolean,
	}
	unknownNodes = &collector.Metric{
		Name:  "accel_remediator_unknown_nodes",
		Help:  "Nodes that alerts name and that the cluster does not have.",
		Kind:  collector.Gauge,
		Range: count,
	}
	alertsListed = &collector.Metric{
		Name:  "accel_remediator_alerts_listed",
		Help:  "1 if an Alertmanager has answered the last pass; else 0, and nothing is begun and nothing undone.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
	acting = &collector.Metric{
		Name:  "accel_remediator_acting",
		Help:  "1 where what is planned is done, 0 in a dry run.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
	lastPass = &collector.Metric{
		Name:  "accel_remediator_last_pass_timestamp_seconds",
		Help:  "When the last pass ended that could list the nodes, seconds since the epoch.",
		Kind:  collector.Mark,
		Range: timestamp,
	}
	lastPassDuration = &collector.Metric{
		Name:  "accel_remediator_last_pass_duration_seconds",
		Help:  "How long the last pass took that could list the nodes.",
		Kind:  collector.Gauge,
		Range: count,
	}
	failedPasses = &collector.Metric{
		Name:  "accel_remediator_failed_passes_total",
		Help:  "Passes that could not list the nodes, since the process started.",
		Kind:  collector.Counter,
		Range: count,
	}
	leader = &collector.Metric{
		Name:  "accel_remediator_leader",
		Help:  "1 in the one process that holds the lease and acts, 0 in those that wait for it.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
	policyReloaded = &collector.Metric{
		Name:  "accel_remediator_policy_last_reload_successful",
		Help:  "1 if the policy in force is that of the file; 0 while the file has a mistake and the former policy stays in force.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
)

// Metrics returns the table of the families, for the documentation and for
// checks of what names them. None of them is in a Snapshot.
func Metrics() []*collector.Metric {
	all := []*collector.Metric{
		acting, actionsTotal, alertsListed, breakerOpen, failedPasses, lastPassDuration, lastPass, leader,
		nodeInspection, nodeOut, plannedNodes, policyReloaded, poolNodes, poolNodesOut, unknownNodes, withheldNodes,
	}
	for i, m := range all {
		row := *m
		row.Scope, row.From = collector.PerNode, []string{"accel-remediator"}
		all[i] = &row
	}
	return all
}
