// Package podmap maintains the allocations of a node's devices to pods, from
// the kubelet's PodResources API, with their age and certainty.
//
// A kubelet's list can be incomplete without an indication: after a start it
// lists no pods, then some of them. While it cannot reach the API server it
// lists none, although every container runs. A kubelet before 1.34 also lists
// pods that have ended. Therefore a listed allocation counts at once, and a
// missing one does not. docs/podmap.md has the rules in full:
//
//   - A listed allocation exists.
//   - A missing allocation is released at once if the same connection has
//     returned a complete list before: the kubelet has not restarted since.
//   - Otherwise it is kept, and marked as kept, until another pod is listed
//     with the device, the list is complete again, or it has not been listed
//     for an hour.
//   - If two pods are listed with one unshared device, the later one has it.
//     If both were there from the start, both are reported and marked as
//     contested.
//
// The package neither logs nor reads the environment. Outside Kubernetes the
// State is StateAbsent and nothing else happens.
package podmap
