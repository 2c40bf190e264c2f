package proc

import "strings"

// PodName is the name of a pod.
type PodName struct{ Namespace, Name string }

// ParsePodDir reads the name of a pod's directory under /var/log/pods,
// NAMESPACE_NAME_UID (pkg/kubelet/kuberuntime, BuildPodLogsDirectory). Neither
// part can contain an underscore. It maps the UID in a cgroup to the pod's name
// without a request to the API server.
func ParsePodDir(dir string) (PodName, string, bool) {
	namespace, rest, ok := strings.Cut(dir, "_")
	name, uid, ok2 := strings.Cut(rest, "_")
	if !ok || !ok2 || !dnsName(namespace) || !dnsName(name) {
		return PodName{}, "", false
	}
	uid, ok = podUID(uid)
	if !ok {
		return PodName{}, "", false
	}
	return PodName{namespace, name}, uid, true
}

// dnsName reports whether s can be the name of an object: a DNS subdomain.
func dnsName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
