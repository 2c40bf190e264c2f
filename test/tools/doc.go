// Package tools tests the rule files in a real Prometheus and a real
// Alertmanager on loopback. The programs are named by PROMETHEUS and
// ALERTMANAGER; .ci/tools.sh gets them.
package tools
