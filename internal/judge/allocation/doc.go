// Package allocation tells what each pod's hold on a device amounts to: for how
// long it has lasted, what the device did for the pod meanwhile, how long it
// did nothing, and what that cost. It joins the devices of a Snapshot with the
// Map of package podmap and adds series of its own to the devices, so that
// those of the devices never change with a pod.
//
// What it promises:
//
//   - A value of a holder was measured of that holder. Of a device that one pod
//     holds alone, that is what the device did; of one that several hold, what
//     the pod's own processes did, and nothing where that cannot be told.
//   - The sum over the holders of a device never exceeds the device.
//   - Unknown activity is never idle, and a device that nobody holds is no idle
//     allocation.
//   - Nobody is said to hold a device only where that is known.
//
// docs/allocation.md has the rules in full.
package allocation
