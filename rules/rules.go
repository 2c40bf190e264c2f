// Package rules holds the rule files that are built into the exporter.
package rules

import "embed"

// Files holds the built-in rule files, in Prometheus' own format. They are
// generated from templates and values.yml.
//
//go:embed *.yaml
var Files embed.FS

// Values is values.yml, the defaults of the values of the rules.
//
//go:embed values.yml
var Values []byte
