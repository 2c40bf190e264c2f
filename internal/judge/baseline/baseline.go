// Package baseline compares the configuration of devices with the approved one.
//
// A Catalogue is a YAML file of approved configurations by hardware class:
// drivers, firmware, MIG layouts, bitstreams. It is applied completely or not
// at all. The first entry that matches a device applies to it. Each component of
// the entry whose value is known gives one series of accel_drift, 1 if the value
// is not approved. An unknown value (a device that does not answer, a region that
// is being configured) has no series.
//
// The resource name of an allocation can encode a design, which is compared
// without a catalogue. Print writes a catalogue of the current state of a node.
package baseline
