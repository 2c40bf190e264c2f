package sim

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// podLogs is the directory of a node's pod logs, in the tree.
const podLogs = "/var/log/pods"

// PodLogs is that directory of the simulation at a state file.
func PodLogs(state string) string { return filepath.Join(Root(state), podLogs) }

// showProcesses updates /proc and the directories of the pods' logs from the
// state.
func (s *State) showProcesses() error {
	return s.onTree(func(m *machine) error {
		s.tellProcesses(m.tree)
		return nil
	})
}

func (s *State) tellProcesses(t *faketree.Tree) {
	for _, name := range t.Names("/proc") {
		if _, err := strconv.Atoi(name); err == nil {
			t.Remove("/proc/" + name)
		}
	}
	byUID := map[string]pod{}
	t.Remove(podLogs)
	if s.Has("kubelet") {
		t.Mkdir(podLogs)
	}
	for _, p := range s.pods() {
		byUID[p.uid] = p
		dir := podLogs + "/" + p.namespace + "_" + p.name + "_" + p.uid
		for _, key := range s.keys(p.key + ".container.") {
			t.Mkdir(dir + "/" + attr(s.Get(key), "name"))
		}
	}
	for _, pid := range s.pids() {
		rec := s.Get("proc." + pid)
		comm := attr(rec, "name")
		if len(comm) > 15 {
			comm = comm[:15]
		}
		dir := "/proc/" + pid
		t.Set(dir+"/comm", comm+"\n")
		// proc_pid_stat(5): field 22 is the start time.
		t.Set(dir+"/stat", fmt.Sprintf("%s (%s) S 1 %s %s 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %s 0 0 18446744073709551615\n", pid, comm, pid, pid, attr(rec, "start")))
		uid := attr(rec, "uid")
		if uid == "" {
			uid = "0"
		}
		t.Set(dir+"/status", fmt.Sprintf("Name:\t%s\nPid:\t%s\nUid:\t%s\t%[3]s\t%[3]s\t%[3]s\n", comm, pid, uid))
		t.Set(dir+"/cgroup", s.cgroupFile(s.cgroupPath(rec, comm, byUID)))
	}
}

// cgroupPath returns the cgroup of a process, as laid out by the kubelet and
// the container runtime (pkg/kubelet/cm; runc's and crun's cgroup managers).
func (s *State) cgroupPath(rec, comm string, pods map[string]pod) string {
	uid := attr(rec, "pod")
	if job := attr(rec, "job"); job != "" {
		return "/system.slice/slurmstepd.scope/job_" + job + "/step_0/user/task_0"
	}
	if uid == "" {
		return "/system.slice/" + comm + ".service"
	}
	p, id := pods[uid], ""
	for _, key := range s.keys(p.key + ".container.") {
		if c := s.Get(key); attr(c, "name") == attr(rec, "container") {
			id = attr(c, "id")
		}
	}
	class := ""
	if p.qos != "guaranteed" {
		class = p.qos
	}
	if s.Get("cgroup.driver") == "cgroupfs" {
		return filepath.Join("/kubepods", class, "pod"+uid, id)
	}
	slice, parent := "kubepods", "/kubepods.slice"
	if class != "" {
		slice += "-" + class
		parent += "/" + slice + ".slice"
	}
	prefix := map[string]string{"crio": "crio-", "docker": "docker-"}[s.Get("cgroup.runtime")]
	if prefix == "" {
		prefix = "cri-containerd-"
	}
	return fmt.Sprintf("%s/%s-pod%s.slice/%s%s.scope", parent, slice, strings.ReplaceAll(uid, "-", "_"), prefix, id)
}

// cgroupFile is /proc/PID/cgroup (cgroups(7)).
func (s *State) cgroupFile(at string) string {
	if s.Get("cgroup.version") != "v1" {
		return "0::" + at + "\n"
	}
	var b strings.Builder
	for i, controller := range []string{"pids", "memory", "devices", "cpu,cpuacct", "name=systemd"} {
		fmt.Fprintf(&b, "%d:%s:%s\n", 5-i, controller, at)
	}
	return b.String()
}
