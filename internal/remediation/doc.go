// Package remediation decides how the nodes of a cluster are changed because of
// firing alerts: labels, taints, cordons, conditions, evictions and Jobs.
//
// Alerts are the only input and the nodes are the only memory. Each change of a
// node is recorded in an annotation that the same request writes. So a restarted
// process, or the next leader, knows what was done, and no change lacks its
// record. A decision depends on the policy, the nodes, the alerts and the time
// only. The package uses no Kubernetes client.
//
// Nothing is undone without knowledge. While no Alertmanager answers, nothing
// changes. An alert counts as resolved only after it has been absent for a while,
// because an Alertmanager that has just started lists no alerts.
package remediation
