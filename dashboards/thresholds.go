package main

// Thresholds of the rules in rules/*.yaml that several panels show: a colour changes
// where an alert fires.
const (
	nearLimitCelsius = 3
	hotThrottleShare = 0.1
	idleAfter        = 1800 // seconds
	neverUsedAfter   = 3600 // seconds
	underusedBelow   = 0.2
	idleExempt       = "kube-system|gpu-operator" // namespaces
)
