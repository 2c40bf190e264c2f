package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// showProcesses updates /proc and the directories of the pods' logs from the
// state.
func (s *State) showProcesses() error {
	return s.onTree(func(tree *faketree.Tree) error {
		s.tellProcesses(tree)
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
	t.Set("/proc/1/cgroup", "0::/init.scope\n")
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
		t.Set(dir+"/status", fmt.Sprintf("Name:\t%s\nPid:\t%s\nUid:\t0\t0\t0\t0\n", comm, pid))
		t.Set(dir+"/cgroup", "0::"+s.cgroupPath(rec, comm, byUID)+"\n")
	}
}

// cgroupPath returns the cgroup of a process, of version 2, as laid out by the
// kubelet with the driver systemd and by containerd (pkg/kubelet/cm).
func (s *State) cgroupPath(rec, comm string, pods map[string]pod) string {
	uid := attr(rec, "pod")
	if uid == "" {
		return "/system.slice/" + comm + ".service"
	}
	p, id := pods[uid], ""
	for _, key := range s.keys(p.key + ".container.") {
		if c := s.Get(key); attr(c, "name") == attr(rec, "container") {
			id = attr(c, "id")
		}
	}
	slice, parent := "kubepods", "/kubepods.slice"
	if p.qos != "guaranteed" {
		slice += "-" + p.qos
		parent += "/" + slice + ".slice"
	}
	return fmt.Sprintf("%s/%s-pod%s.slice/cri-containerd-%s.scope", parent, slice, strings.ReplaceAll(uid, "-", "_"), id)
}
