// Command dashboards writes the Grafana dashboards of this directory, one JSON
// file for each Go file that describes one.
package main
