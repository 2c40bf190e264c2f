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

// The metric families of accel-remediator. A name is written only here, and
// docs/metrics.md is generated from it. The families of the plan are absent
// before the first pass, so a process that never led has none.
var (
	actionsTotal = &collector.Metric{
		Name:   "accel_remediator_actions_total",
		Help:   "Actions on nodes, single devices and pods since the process started, by result.",
		Kind:   collector.Counter,
		Labels: []string{"action", "result"},
		Range:  count,
		Values: []string{
			"action: take_out, mark (update of a node or device that is out), let_in, forget (deletion of the DeviceTaintRule of a device without history), condition, event, evict, call (of a hook), test (creation of the Job of a test before a return), devices (list of the devices of DRA drivers, in each pass of a policy with device)",
			"result: done, refused (by a disruption budget), conflict (the node or rule had changed; tried again), error",
		},
	}
	withheldNodes = &collector.Metric{
		Name:   "accel_remediator_withheld_nodes",
		Help:   "Nodes of the pool, and single devices of nodes, that are not taken out or not let in, by reason.",
		Kind:   collector.Gauge,
		Labels: []string{"pool", "reason"},
		Range:  count,
		Values: []string{"reason: hold (the annotation accel.health/hold), suppressed (the alert is silenced, inhibited or no longer listed), share (limits.share), hour (limits.per_hour), pace (limits.returns_per_hour), breaker, unknown (an Alertmanager that may know the alert does not answer), policy (the policy has changed and does not cover what the node is out for), exporter (the exporter of the node does not answer, or has forgotten the fault), source (a source of the exporter does not answer), device (a device that the alerts named is not healthy, or another has failed), test (the test before the return has not passed yet), eviction (NoExecute would evict pods that the alerts do not name; the device has NoSchedule), evidence (the exporter is writing or sending the evidence of the fault)"},
	}
	plannedNodes = &collector.Metric{
		Name:   "accel_remediator_planned_nodes",
		Help:   "Nodes, and single devices of nodes, with a planned action in the last pass. In a dry run the action is not executed.",
		Kind:   collector.Gauge,
		Labels: []string{"action"},
		Range:  count,
		Values: []string{"action: take_out, mark, let_in, forget, evict (while the alert that names the pod fires), call"},
	}
	poolNodes = &collector.Metric{
		Name:   "accel_remediator_pool_nodes",
		Help:   "Nodes of the pool. The pool is the value of the node label that pool_label of the policy names, empty for nodes without it.",
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
	poolDevicesOut = &collector.Metric{
		Name:   "accel_remediator_pool_devices_out",
		Help:   "Single devices of nodes of the pool that are taken out by a DeviceTaintRule.",
		Kind:   collector.Gauge,
		Labels: []string{"pool"},
		Range:  count,
	}
	breakerOpen = &collector.Metric{
		Name:   "accel_remediator_breaker_open",
		Help:   "1 while so many nodes of the pool fail at once that no further node is taken out.",
		Kind:   collector.Gauge,
		Labels: []string{"pool"},
		Range:  boolean,
	}
	nodeOut = &collector.Metric{
		Name:   "accel_remediator_node_out_timestamp_seconds",
		Help:   "When the node, or the one device of it that the label device names, was taken out, seconds since the epoch; absent for what is in. At most 1000 have a series.",
		Kind:   collector.Mark,
		Labels: []string{"pool", "node", "device"},
		Range:  timestamp,
	}
	nodeInspection = &collector.Metric{
		Name:   "accel_remediator_node_inspection_required",
		Help:   "1 if the node, or the one device of it that the label device names, was taken out so often that it stays out until a person removes the annotation accel.health/inspect; else absent. At most 1000 have a series.",
		Kind:   collector.Gauge,
		Labels: []string{"pool", "node", "device"},
		Range:  boolean,
	}
	unknownNodes = &collector.Metric{
		Name:  "accel_remediator_unknown_nodes",
		Help:  "Nodes that alerts name and that do not exist in the cluster.",
		Kind:  collector.Gauge,
		Range: count,
	}
	alertsWithoutNode = &collector.Metric{
		Name:  "accel_remediator_alerts_without_node",
		Help:  "Firing alerts that a rule of the policy matches and that have no label with the node (node_label of the policy), so that nothing is done for them.",
		Kind:  collector.Gauge,
		Range: count,
	}
	alertsListed = &collector.Metric{
		Name:   "accel_remediator_alerts_listed",
		Help:   "1 if the Alertmanager answered the last pass. While 0, no node is let in whose alert it listed; while 0 for all, no node is taken out.",
		Kind:   collector.Gauge,
		Labels: []string{"alertmanager"},
		Range:  boolean,
	}
	acting = &collector.Metric{
		Name:  "accel_remediator_acting",
		Help:  "1 if the plan is executed, 0 in a dry run.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
	lastPass = &collector.Metric{
		Name:  "accel_remediator_last_pass_timestamp_seconds",
		Help:  "When the last pass made its plan, seconds since the epoch.",
		Kind:  collector.Mark,
		Range: timestamp,
	}
	leader = &collector.Metric{
		Name:  "accel_remediator_leader",
		Help:  "1 in the process that has the lease and acts, 0 in the processes that wait for it.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
	policyReloaded = &collector.Metric{
		Name:  "accel_remediator_policy_last_reload_successful",
		Help:  "1 if the policy file was loaded; 0 while it has a mistake and the former policy stays in force.",
		Kind:  collector.Gauge,
		Range: boolean,
	}
)

// Metrics returns the table of the families, for the documentation and for checks
// of rules and dashboards. None of them is in a Snapshot.
func Metrics() []*collector.Metric {
	all := []*collector.Metric{
		acting, actionsTotal, alertsListed, alertsWithoutNode, breakerOpen, lastPass, leader,
		nodeInspection, nodeOut, plannedNodes, policyReloaded, poolDevicesOut, poolNodes, poolNodesOut, unknownNodes, withheldNodes,
	}
	for i, m := range all {
		row := *m
		row.Scope, row.From = collector.PerNode, []string{"accel-remediator"}
		all[i] = &row
	}
	return all
}
