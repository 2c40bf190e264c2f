package sim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

var (
	podArg    = Arg{Name: "pod", Help: "NAMESPACE/NAME, or the name where one pod has it"}
	pidArg    = Arg{Name: "pid", Help: "number of the process"}
	memFlag   = Flag{Name: "memory", Help: "MiB of the GPU that the process has", Default: "1024"}
	loadFlag  = Flag{Name: "load", Help: "what the device does from then on, from 0 to 1; as before without it"}
	shareFlag = Flag{Name: "share", Help: "percent of the GPU's load that is the process's", Default: "100"}
)

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
	if !dnsLabel.MatchString(namespace) || !dnsName.MatchString(name) || !dnsLabel.MatchString(in["container"]) || !dnsName.MatchString(cmp.Or(in["claim"], "none")) {
		return fmt.Errorf("want a pod as NAMESPACE/NAME, and names as Kubernetes has them, found %q, %q, %q", in["pod"], in["container"], in["claim"])
	}
	qos, err := in.one("qos", qosClasses)
	if err != nil {
		return err
	}
	devices, err := s.asked(in)
	if err != nil {
		return err
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
	p := pod{namespace: namespace, name: name, qos: qosClasses[qos], uid: derivedUID(false, s.Get("scenario"), namespace, name, s.Get("kubelet.made"))}
	p.key = s.addPod(p)
	s.addContainer(p.key, p.uid, in["container"], "")
	pid := uint64(0)
	if in["pid"] != "" {
		if pid, err = in.pid(); err != nil {
			return err
		}
	}
	for _, h := range devices {
		if in["claim"] != "" {
			s.claim(p.key, in["claim"], "node", "", h)
		} else {
			s.allocate(p.key, in["container"], h)
		}
		if in["pid"] == "" || h.on.gpu < 0 {
			continue
		}
		if err := s.startProcess(strconv.FormatUint(pid, 10), h.on, in, p.uid, in["container"]); err != nil {
			return err
		}
		pid++
	}
	return s.showProcesses()
}

// asked finds the devices that a pod is to have.
func (s *State) asked(in input) ([]allocated, error) {
	var out []allocated
	for _, ref := range strings.Fields(in["devices"]) {
		h, err := s.reference(ref)
		if in["claim"] != "" {
			h, err = s.draName(draDriver, ref)
		}
		if err != nil {
			return nil, err
		}
		if in["resource"] != "" {
			h.resource = in["resource"]
		}
		if !deviceName.MatchString(h.resource) {
			return nil, fmt.Errorf("%s: its resource is unknown; give --resource", ref)
		}
		out = append(out, h)
	}
	return out, nil
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

// finishPod lets the containers of a pod end by themselves.
func finishPod(s *State, in input) error {
	p, err := s.podNamed(in["pod"])
	if err != nil {
		return err
	}
	return s.endContainers(p, in.on("listed"))
}

func (s *State) endProcesses(p pod) {
	for _, pid := range s.pids() {
		if attr(s.Get("proc."+pid), "pod") == p.uid {
			s.endProcess(pid)
		}
	}
}
