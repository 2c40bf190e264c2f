// Package engine evaluates Prometheus rule files on the node: recording and
// alerting rules with the semantics of Prometheus, by its own PromQL engine,
// over a bounded memory of what the exporter's page said lately.
//
// The *.yaml files beside it are built in. An Engine gathers the page at its
// interval, and at once after Trigger, evaluates the groups that are due and
// hands alerts to a function. It never calls a device.
package engine
