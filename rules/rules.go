// Package rules holds the rule files that are built into the exporter.
package rules

import "embed"

// Files holds the built-in rule files, in Prometheus' own format.
//
//go:embed *.yaml
var Files embed.FS
