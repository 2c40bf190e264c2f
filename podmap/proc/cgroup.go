package proc

import "strings"

// parseCgroup finds the pod in /proc/PID/cgroup (cgroups(7)): a line for each
// hierarchy of version 1, "N:controllers:path", and one of version 2,
// "0::path".
//
// The kubelet's paths, by its cgroup driver (pkg/kubelet/cm):
//
//	systemd   …/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/RUNTIME-ID.scope
//	cgroupfs  …/kubepods/burstable/podUID/ID
//
// A guaranteed pod has no class of service in them; systemd's UID has _ for -.
// Within another cgroup namespace than the node's, a path begins at the cgroup of
// our container: /../../podUID/ID, /../../../../system.slice/x.service.
//
// A container outside of the kubelet's cgroups may be of a pod, with
// --cgroups-per-qos=false (/k8s.io/ID), or of another program: its owner is
// unknown.
func parseCgroup(text string) Owner {
	host, job := false, ""
	for line := range strings.Lines(text) {
		_, rest, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		_, path, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !strings.HasPrefix(path, "/") {
			continue
		}
		if uid, ok := podOf(path); ok {
			return Owner{Kind: Pod, PodUID: uid}
		}
		if isContainer(path) {
			return Owner{Kind: Hidden}
		}
		if j := slurmJob(path); j != "" {
			host, job = true, j
		}
		host = host || isHost(path)
	}
	if !host {
		return Owner{Kind: Hidden}
	}
	return Owner{Kind: Host, Job: job}
}

// isHost reports whether a cgroup is outside of every container. From within a
// container, the root is the container itself, and what begins with .. can be a
// container of the same pod, unless it is a unit of systemd.
func isHost(path string) bool {
	above, outside := strings.CutPrefix(path, "/..")
	if !outside {
		return path != "/"
	}
	for s := range strings.SplitSeq(above, "/") {
		if s == "init.scope" || strings.HasSuffix(s, ".slice") || strings.HasSuffix(s, ".service") {
			return true
		}
	}
	return false
}

// isContainer reports whether a cgroup's path has the id of a container: ID,
// docker-ID.scope, cri-containerd-ID.scope.
func isContainer(path string) bool {
	for s := range strings.SplitSeq(path, "/") {
		s = strings.TrimSuffix(s, ".scope")
		s = s[strings.LastIndexAny(s, "-:")+1:]
		if len(s) == 64 && isHex(s) {
			return true
		}
	}
	return false
}

// slurmJob returns the number of a Slurm job in a cgroup's path, or "". Slurm's
// paths (src/plugins/cgroup) are, below a root that a site can rename,
//
//	v1  /slurm/uid_1000/job_4711/step_0/task_0, /slurm_NODE/uid_…
//	v2  /system.slice/slurmstepd.scope/job_4711/step_0/user/task_0, NODE_slurmstepd.scope
func slurmJob(path string) string {
	slurm := false
	for s := range strings.SplitSeq(path, "/") {
		id, is := strings.CutPrefix(s, "job_")
		if is && slurm && len(id) <= 20 && id != "" && strings.Trim(id, "0123456789") == "" {
			return id
		}
		slurm = slurm || s == "slurm" || strings.HasPrefix(s, "slurm_") || strings.HasSuffix(s, "slurmstepd.scope")
	}
	return ""
}

// podOf returns the UID of the pod in a cgroup's path.
func podOf(path string) (uid string, ok bool) {
	inPods := false
	if strings.HasPrefix(path, "/../") {
		// Relative to ours, which is in the cgroup of a pod too.
		first, _, _ := strings.Cut(strings.TrimLeft(path, "/."), "/")
		inPods = first == "burstable" || first == "besteffort" || strings.HasPrefix(first, "pod")
	}
	for s := range strings.SplitSeq(path, "/") {
		// containerd with systemd paths and the cgroupfs driver:
		// kubepods-burstable-podUID.slice:cri-containerd:ID.
		slice, _, _ := strings.Cut(s, ":")
		name := strings.TrimSuffix(slice, ".slice")
		inPods = inPods || name == "kubepods" || strings.HasSuffix(name, "-kubepods") || strings.HasPrefix(name, "kubepods-")
		if !inPods {
			continue
		}
		at := strings.LastIndex(name, "pod")
		if at < 0 || at > 0 && name[at-1] != '-' {
			continue
		}
		if uid, ok := podUID(name[at+len("pod"):]); ok {
			return uid, true
		}
	}
	return "", false
}

// podUID checks a UID in a cgroup's name: a UUID with - or _ between its
// groups, or the 32 digits of a static pod's hash.
func podUID(s string) (string, bool) {
	s = strings.ReplaceAll(s, "_", "-")
	switch len(s) {
	case 32:
		return s, isHex(s)
	case 36:
		for i, n := range []int{8, 13, 18, 23} {
			if s[n] != '-' || i > 0 && strings.Contains(s[n-4:n], "-") {
				return "", false
			}
		}
		return s, isHex(strings.ReplaceAll(s, "-", "")) && strings.Count(s, "-") == 4
	}
	return "", false
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
