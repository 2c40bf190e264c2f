// Package tools holds the rule files against a real Prometheus and a real
// Alertmanager on loopback. Where the programs are is said by PROMETHEUS and
// ALERTMANAGER; .ci/tools.sh gets them.
package tools
