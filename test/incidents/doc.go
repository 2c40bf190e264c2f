// Package incidents plays what can happen to a node against the exporter, its
// rule engine and a real Alertmanager, and judges the alerts that arrive.
//
// An incident is a file of fixtures/incidents: a simulated node, what happens
// to it and when, and which alerts must come of it. Alerts wait for minutes and
// hours; so that a play takes seconds, the times of the rules and of the
// exporter's judgement are divided by a factor, and nothing else of them is
// changed. Command play runs them.
package incidents
