package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	podArg   = Arg{Name: "pod", Help: "NAMESPACE/NAME, or the name where one pod has it"}
	pidArg   = Arg{Name: "pid", Help: "number of the process"}
	memFlag  = Flag{Name: "memory", Help: "MiB of the GPU that the process has", Default: "1024"}
	loadFlag = Flag{Name: "load", Help: "what the device does from then on, from 0 to 1; as before without it"}
)

// podFaults start and end pods and processes.
var podFaults = []Fault{
	{
		Name: "pod-start", Help: "a pod starts with these devices, and the kubelet lists it", apply: startPod,
		Args:  []Arg{{Name: "pod", Help: "NAMESPACE/NAME"}, {Name: "devices", Help: ReferenceHelp, Optional: true, Rest: true}},
		Flags: []Flag{{Name: "resource", Help: "the resource of the kubelet's own ids, such as gpu.intel.com/i915"}, {Name: "pid", Help: "start a process on each of its GPUs, with PIDs from this one on"}, memFlag, loadFlag},
	},
	{
		Name: "pod-evict", Help: "a pod is evicted, or dies of a fault: its processes end, and the kubelet no longer lists it", apply: onNode(evictPod), Args: []Arg{podArg},
		Flags: []Flag{{Name: "xid", Help: "its GPUs report this Xid first"}, {Name: "after", Help: "time from the Xid to the eviction", Default: "1s"}},
	},
	{Name: "pod-end", Help: "a pod ends and is deleted", apply: endPod, Args: []Arg{podArg}},
	{
		Name: "process-start", Help: "a process uses a GPU or a MIG device; a process of the host without --pod", apply: injectProcess, Args: []Arg{pidArg, deviceArg},
		Flags: []Flag{{Name: "pod", Help: "its pod, NAMESPACE/NAME"}, {Name: "name", Help: "path of its program", Default: "/usr/bin/python3"}, memFlag, loadFlag},
	},
	{Name: "process-end", Help: "a process ends", apply: injectProcessEnd, Args: []Arg{pidArg}},
}

// startPod starts a pod with the devices that the argument names, on each of
// which it has a process where a PID is given. A pod that has finished is
// replaced.
func startPod(s *State, in input) error {
	if err := s.needsAPIServer(); err != nil {
		return err
	}
	namespace, name, ok := strings.Cut(in["pod"], "/")
	if !ok {
		namespace, name = "default", in["pod"]
	}
	if !dnsLabel.MatchString(namespace) || !dnsName.MatchString(name) {
		return fmt.Errorf("want a pod as NAMESPACE/NAME, found %q", in["pod"])
	}
	var devices []allocated
	for ref := range strings.FieldsSeq(in["devices"]) {
		h, err := s.reference(ref)
		if err != nil {
			return err
		}
		if h.resource == "" {
			h.resource = in["resource"]
		}
		if !deviceName.MatchString(h.resource) {
			return fmt.Errorf("%s: its resource is unknown; want %s, with --resource", ref, ReferenceHelp)
		}
		devices = append(devices, h)
	}
	if len(s.pods()) >= maxPods {
		return fmt.Errorf("%d pods; a node has no more", maxPods)
	}
	for _, p := range s.pods() {
		if p.namespace == namespace && p.name == name {
			if !p.finished {
				return fmt.Errorf("the pod %s/%s runs already", namespace, name)
			}
			s.endProcesses(p)
			s.removePod(p)
		}
	}
	// A pod of a name that was used before is another pod.
	s.Set("kubelet.made", strconv.FormatInt(s.integer("kubelet.made")+1, 10))
	p := pod{namespace: namespace, name: name, qos: "burstable", uid: derivedUID(false, s.Get("scenario"), namespace, name, s.Get("kubelet.made"))}
	p.key = s.addPod(p)
	const container = "main"
	s.addContainer(p.key, p.uid, container)
	pid := uint64(0)
	if in["pid"] != "" {
		var err error
		if pid, err = in.pid(); err != nil {
			return err
		}
	}
	for _, h := range devices {
		s.allocate(p.key, container, h)
		if in["pid"] == "" || h.on.gpu < 0 {
			continue
		}
		if err := s.startProcess(strconv.FormatUint(pid, 10), h.on, in, p.uid, container); err != nil {
			return err
		}
		pid++
	}
	return s.showProcesses()
}

// endPod deletes a pod: it is not listed any more and its logs are gone.
func endPod(s *State, in input) error {
	if err := s.needsAPIServer(); err != nil {
		return err
	}
	p, err := s.podNamed(in["pod"])
	if err != nil {
		return err
	}
	s.endProcesses(p)
	s.removePod(p)
	return s.showProcesses()
}

func (s *State) endProcesses(p pod) {
	for _, pid := range s.pids() {
		if attr(s.Get("proc."+pid), "pod") == p.uid {
			s.endProcess(pid)
		}
	}
}

// evictPod evicts a pod: its devices report a Xid, and after a delay its
// processes are gone and the kubelet no longer lists it. Its logs remain,
// because it has not been deleted.
func evictPod(s *State, in input) error {
	p, err := s.podNamed(in["pod"])
	if err != nil {
		return err
	}
	if p.finished {
		return fmt.Errorf("the pod %s/%s has finished", p.namespace, p.name)
	}
	var wait time.Duration
	if in["xid"] != "" {
		if wait, err = in.duration("after"); err != nil {
			return err
		}
		if err := s.strikePod(p, in["xid"]); err != nil {
			return err
		}
	}
	s.then(wait, func(s *State) error {
		for _, q := range s.pods() {
			if q.uid == p.uid {
				return s.endContainers(q)
			}
		}
		return nil // the pod has ended meanwhile
	})
	return nil
}

// strikePod makes every GPU and MIG device of a pod report a Xid.
func (s *State) strikePod(p pod, code string) error {
	struck := false
	for i := range s.gpus() {
		devices := []device{{i, -1}}
		for m := range s.migs(i) {
			devices = append(devices, device{i, m})
		}
		for _, d := range devices {
			if !s.hasDevice(p, d) {
				continue
			}
			struck = true
			if err := injectXid(s, input{"code": code, "device": s.deviceUUID(d), "count": "1"}); err != nil {
				return err
			}
		}
	}
	if !struck {
		return fmt.Errorf("the pod %s/%s has no GPU that could report a Xid", p.namespace, p.name)
	}
	return nil
}

// hasDevice reports whether a device is allocated to a pod.
func (s *State) hasDevice(p pod, d device) bool {
	for _, key := range s.keys(p.key + ".device.") {
		if deviceUUIDIn.FindString(attr(s.Get(key), "id")) == s.deviceUUID(d) {
			return true
		}
	}
	for _, key := range s.keys(p.key + ".claim.") {
		rec := s.Get(key)
		h, err := s.draName(attr(rec, "driver"), s.deviceUUID(d))
		if err == nil && h.id == attr(rec, "device") {
			return true
		}
	}
	return false
}

// endContainers ends the containers of a pod, which the kubelet no longer lists. Until
// the pod is deleted its logs remain.
func (s *State) endContainers(p pod) error {
	s.endProcesses(p)
	s.Set(p.key, strings.Replace(s.Get(p.key), "phase=running", "phase=finished", 1))
	return s.showProcesses()
}
