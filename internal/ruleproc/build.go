package ruleproc

import "github.com/accel-exporter/accel-exporter/internal/peer"

// Build says what this program was made from.
func Build() string { return peer.Build() }
