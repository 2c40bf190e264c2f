// Package baseline compares what devices run with what their owner approved.
//
// A Catalogue is a YAML file of approved configurations by hardware class:
// drivers, firmware, MIG layouts, bitstreams. It is taken whole or not at all.
// The first of its entries that matches a device is the device's own; each of
// the entry's components that has been read gives one series of accel_drift, 1
// where the value read is none of those approved. What has not been read (a
// device that does not answer, a region that is being configured) is neither:
// it has no series.
//
// The resource name by which a pod holds an FPGA can promise a design by
// itself; what was promised is compared without any catalogue. Print writes the
// catalogue of a node as it is.
package baseline
