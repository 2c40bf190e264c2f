// Package differential compares the rule engine with Prometheus' own: the same
// pages go to an Engine and, as a scrape would bring them, to a tsdb.Head over
// which Prometheus' rules.Group evaluates the same rules at the same times.
// After each step both must have the same alerts, the same ALERTS and recorded
// series, and have handed on the same notifications. README.md lists where they
// differ on purpose.
package differential
