// Package compat exports a Snapshot with the metric names, units and labels of
// NVIDIA's dcgm-exporter. Its View implements exposition.View.
//
// A value that was not measured is absent, where dcgm-exporter exports 0. The
// series of a device that several pods share have no pod labels; values measured
// by process have an additional series for each pod. A value of a whole board is
// exported once, not for each MIG instance. The differences and their reasons
// are in docs/migrating-from-dcgm-exporter.md, whose tables are generated from
// the mappings of this package.
package compat
