// Package engine evaluates Prometheus rule files on the node: recording and
// alerting rules with the semantics of Prometheus, through its PromQL engine,
// over a bounded memory of recent samples of the exporter's page.
//
// The *.yaml files of package rules are built in. An Engine reads the page at
// its interval, and at once after Trigger, evaluates the groups that are due
// and passes alerts to a function. It calls no device. A rule that fails,
// panics, runs too long or reads too many samples loses that evaluation; the
// other rules are evaluated.
package engine
