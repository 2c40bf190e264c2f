package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// compilePods adds the node's processes and pods to the state.
func (sc *Scenario) compilePods(s *State) error {
	for i := range s.gpus() {
		for _, key := range s.keys(fmt.Sprintf("gpu.%d.process.", i)) {
			rec := s.Get(key)
			s.addProcess(attr(rec, "pid"), 1000, attr(rec, "name"), "", "")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sc.cgroups)) {
		s.Set("cgroup."+key, sc.cgroups[key])
	}
	if !sc.kubelet {
		return nil
	}
	s.Set("kubelet", "up")
	s.Set("kubelet.starts", "1")
	for _, d := range sc.allocatable {
		h, err := s.reference(d.ref)
		if err != nil {
			return d.at.errorf("%w", err)
		}
		h.resource = d.resource
		s.offer(h)
	}
	for _, p := range sc.pods {
		if err := sc.compilePod(s, p); err != nil {
			return err
		}
	}
	return nil
}

func (sc *Scenario) compilePod(s *State, e podEntry) error {
	p := pod{namespace: e.namespace, name: e.name, uid: e.uid, qos: e.qos}
	if p.uid == "" {
		p.uid = derivedUID(e.static, sc.Name, e.namespace, e.name)
	}
	p.key = s.addPod(p)
	for _, c := range e.containers {
		more := ""
		if c.init {
			more = " init=yes"
		}
		if len(c.numa) > 0 {
			more += " numa=" + strings.Join(c.numa, ",")
		}
		s.addContainer(p.key, p.uid, c.name, more)
		for _, d := range c.devices {
			h, err := s.reference(d.ref)
			if err != nil {
				return d.at.errorf("%w", err)
			}
			h.resource = d.resource
			s.allocate(p.key, c.name, h)
		}
		for _, q := range c.processes {
			pid := strconv.Itoa(q.pid)
			rec := s.Get("proc." + pid)
			if rec == "" {
				return q.at.errorf("no GPU has a process %s; want one of %s", pid, strings.Join(s.pids(), ", "))
			}
			if owner := attr(rec, "pod"); owner != "" {
				return q.at.errorf("process %s is another container's already", pid)
			}
			s.addProcess(pid, 1000, attr(rec, "name"), p.uid, c.name)
		}
	}
	for _, c := range e.claims {
		for _, d := range c.devices {
			h, err := s.draName(c.driver, d.ref)
			if err != nil {
				return d.at.errorf("%w", err)
			}
			s.claim(p.key, c.name, c.pool, c.share, h)
		}
	}
	return nil
}

// claim allocates a device to a pod by dynamic resource allocation.
func (s *State) claim(p, name, pool, share string, h allocated) {
	rec := fmt.Sprintf("name=%s driver=%s pool=%s device=%s", name, h.resource, pool, h.id)
	if share != "" {
		rec += " share=" + share
	}
	s.Set(fmt.Sprintf("%s.claim.%d", p, s.nextIndex(p+".claim.")), rec)
	if h.on.gpu >= 0 {
		s.Set("dra."+s.deviceUUID(h.on), "1") // no device plugin offers it
	}
}

// derivedUID is deterministic, like madeUUID: a UUID, or a hash for a static
// pod.
func derivedUID(static bool, parts ...string) string {
	uid := strings.TrimPrefix(madeUUID("pod", parts...), "pod-")
	if static {
		return strings.ReplaceAll(uid, "-", "")
	}
	return uid
}

// addProcess adds a process to /proc. start is its start time, in hundredths of
// a second since boot.
func (s *State) addProcess(pid string, start int64, name, podUID, container string) {
	if name = path.Base(name); name == "." {
		name = "python3"
	}
	rec := fmt.Sprintf("start=%d name=%s", start, name)
	if podUID != "" {
		rec += fmt.Sprintf(" pod=%s container=%s", podUID, container)
	}
	s.Set("proc."+pid, rec)
}

func (s *State) pids() []string {
	var out []string
	for _, key := range s.keys("proc.") {
		out = append(out, strings.TrimPrefix(key, "proc."))
	}
	return out
}
