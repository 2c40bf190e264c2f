// Command dashboards writes the Grafana dashboards of this directory, one JSON
// file for each Go file that describes one. What a panel compares with is read
// from rules/values.yml, so that a colour changes where an alert fires.
package main
