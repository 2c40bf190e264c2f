// Package lifecycle finds the changes of each allocation of a device to a pod: its
// start, the first activity of the pod, idle periods, faults of the device and the
// release. It compares successive states of package allocation. States may be skipped.
//
// Guarantees:
//
//   - Every allocation starts once and is released at most once. It has no
//     change before its start or after its release.
//   - Only a complete list without the allocation releases it. An allocation
//     that is not listed continues if the kubelet does not answer, if its device
//     is gone and its pod is still listed, or if the device has more pods than
//     are reported.
//   - Every idle period ends, at the latest with its allocation.
package lifecycle
