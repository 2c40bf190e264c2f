// Package lifecycle tells how each hold of a pod on a device goes: that it was
// found, when the pod first did something, when it did nothing, which faults
// the device had meanwhile, and that it is over. It draws that from successive
// looks at what package allocation knows, of which any may be left out.
//
// What it promises:
//
//   - Every hold begins once and is released at most once, and nothing is told
//     of it before or after.
//   - A hold is released only where a complete list is without it. One that is
//     not listed because the kubelet does not answer, because its device is
//     gone while its pod is listed, or because there are more holders than are
//     told, goes on.
//   - A stretch of idleness that begins ends, at the latest with its hold.
package lifecycle
