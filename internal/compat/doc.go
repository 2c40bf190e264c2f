// Package compat shows a Snapshot as NVIDIA's dcgm-exporter would: families
// named after DCGM's fields, in DCGM's units, under that exporter's labels. It
// is an exporter.View.
//
// Where the other exporter would say what nobody measured, it says nothing. A
// device that several pods share has its series without a pod beside those
// that were measured by process; what belongs to a whole board stands once,
// not on each of its MIG instances. docs/migrating-from-dcgm-exporter.md says
// where the two differ and why; its tables are made from the mapping here.
package compat
