// Package podmap tells which pod holds which device, from the kubelet's
// PodResources API, and how sure and how old that is.
//
// The kubelet answers wrongly without saying so: after its start it lists no
// pod, then some of them, and while it cannot reach the API server it goes on
// listing none although every container runs. A kubelet before 1.34 also lists
// pods that have ended. So an answer is believed for what it says, not at once
// for what it leaves out. The rule, which docs/podmap.md gives in full:
//
//   - What is listed is held.
//   - What is missing is released at once where the same connection has shown
//     a complete list before: the kubelet behind it has not restarted since.
//   - Else it is kept, marked as such, until another pod is listed with the
//     device, the list is complete again, the device is gone, or it has not
//     been listed for Options.Expire.
//   - Of two pods that are listed with one unshared device the one that came
//     later holds it; where both were there from the start, both are told and
//     marked as contested.
//
// The package neither logs nor reads the environment. Outside Kubernetes the
// State is StateAbsent, and nothing else happens.
package podmap
