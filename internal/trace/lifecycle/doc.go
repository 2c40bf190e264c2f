// Package lifecycle derives what happens to each allocation, which is one
// pod's use of one device: its start, the first activity of the pod, idle
// stretches, faults of the device and the release. It compares successive
// states of package allocation, of which any may be skipped.
//
// Guarantees:
//
//   - Every allocation starts once and is released at most once. It has no
//     change before its start or after its release.
//   - Only a complete list without the allocation releases it. An allocation
//     that is not listed goes on where the kubelet does not answer, where its
//     device is gone and its pod is still listed, or where the device has more
//     holders than are reported.
//   - An idle stretch that begins also ends, at the latest with its
//     allocation.
package lifecycle
