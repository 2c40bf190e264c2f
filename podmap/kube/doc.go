// Package kube reads from the API server what the kubelet does not list: the
// UID, allowed labels and workload of the node's pods and,
// optionally, the devices that DRA drivers publish in ResourceSlices.
//
// It is optional. It lists and watches the pods of one node, and that node's
// ResourceSlices, and reads single ResourceClaims, over plain HTTPS. docs/kubernetes-api.md gives the reasons
// against client-go, the permissions and the rules in full:
//
//   - Of a pod nothing is kept but the fields of Pod. A label is kept only if
//     an allow-list names it.
//   - A deleted pod is kept for ten minutes, because the kubelet lags
//     behind.
//   - While the API server does not answer, the data is stale. After
//     an hour it is dropped.
//   - A published device is kept until its driver has published the pool in
//     full again. The deletion of slices is no sign that devices are gone: a
//     kubelet that starts deletes all slices of its node.
//
// The package neither logs nor reads the environment. No error and no Status
// contains the token.
package kube
