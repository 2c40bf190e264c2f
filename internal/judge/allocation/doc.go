// Package allocation measures the allocations of a node's devices: how long a
// pod has had a device, what the device did for the pod, how long it was idle,
// and what that cost. It joins the devices of a Snapshot with the Map of
// package podmap and adds separate series, so that the series of the devices
// never change with a pod.
//
// It guarantees:
//
//   - A value of an allocation was measured for its pod. For a device of one
//     pod, that is what the device did. For a shared device, it is what the
//     pod's own processes did, and absent if that is unknown.
//   - The sum over the allocations of a device never exceeds the device.
//   - Unknown activity is never idle, and a device without an allocation is
//     never an idle allocation.
//   - A device is reported as not allocated only if that is known.
//
// docs/allocation.md has the rules in full.
package allocation
