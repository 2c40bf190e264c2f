// Package kube tells what the API server knows of the node's pods beyond
// what the kubelet lists: UID, allowed labels, workload, phase and deletion;
// and, where asked, which device a DRA driver means by a name.
//
// It is optional. It lists and watches the pods of one node, and that node's
// ResourceSlices, over plain HTTPS; docs/kubernetes-api.md says why not by client-go,
// what it needs to be allowed, and gives the rules below in full.
//
//   - Of a pod nothing is kept but the fields of Pod. A label is kept only
//     where an allow-list names it.
//   - A pod that was deleted is told for Options.Linger, because the kubelet
//     and whoever asks about the past lag behind.
//   - While the API server does not answer, what it said is told as stale, and
//     forgotten after Options.Expire.
//   - What a driver said of a device holds until the same driver has published
//     the device's pool in full again. That its slices are deleted says
//     nothing: a kubelet that starts deletes all slices of its node.
//
// The package neither logs nor reads the environment. No token stands in an
// error or a Status.
package kube
