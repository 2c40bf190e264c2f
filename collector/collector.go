// Package collector is the model of accel-exporter: Device, Reading, Event,
// Snapshot, Source and the table of every metric. It is independent of vendors
// and of exposition, and imports the standard library only.
//
// A Source reads hardware. A Sampler calls every Source on its own tick and
// publishes an immutable Snapshot. Exposition and rules read the latest
// Snapshot, never a device. A worker process reads each native library; Serve
// and Process are its two ends.
//
// The package guarantees that a value that was not measured is not in the list
// of Readings (there is no NaN, no -1 and no zero for unknown), that the gauges
// of a failed device or Source disappear while its counters stay, and that one
// device or Source does not affect another.
package collector
