// Package remediation decides what is done to the nodes of a cluster for the
// alerts that fire: labels, taints, cordons, conditions, evictions, jobs.
//
// Alerts are the only input and the nodes are the only memory. What was done to
// a node stands on the node, in an annotation that is written by the same
// request as the deed. So whoever starts anew, or takes over, sees how far the
// one before had come, and a deed is never without its record. A decision is a
// function of the policy, the nodes, the alerts and the time; the package knows
// no Kubernetes client.
//
// Nothing is undone on ignorance: while no Alertmanager answers, everything
// stays as it is, and an alert must be gone for a while before it counts as
// resolved, since an Alertmanager that has just started knows none.
package remediation
