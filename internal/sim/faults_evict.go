package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// evictPod lets a pod go in the way in which a fault makes it: its devices
// have a Xid, and so long after that its processes are gone and no kubelet
// lists it. Its logs stay, since nobody has deleted it.
func evictPod(s *State, in input) error {
	if err := s.needsKubelet(); err != nil {
		return err
	}
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
				return s.endContainers(q, false)
			}
		}
		return nil // somebody was faster
	})
	return nil
}

// strikePod has every GPU and MIG device of a pod throw a Xid.
func (s *State) strikePod(p pod, code string) error {
	struck := false
	for i := range s.gpus() {
		devices := []device{{i, -1}}
		for m := range s.migs(i) {
			devices = append(devices, device{i, m})
		}
		for _, d := range devices {
			if !s.holds(p, d) {
				continue
			}
			struck = true
			if err := injectXid(s, input{"code": code, "device": s.deviceUUID(d), "count": "1"}); err != nil {
				return err
			}
		}
	}
	if !struck {
		return fmt.Errorf("the pod %s/%s holds no GPU that could have a Xid", p.namespace, p.name)
	}
	return nil
}

// holds reports whether a pod has a device, by whatever name.
func (s *State) holds(p pod, d device) bool {
	for _, key := range s.keys(p.key + ".device.") {
		id := attr(s.Get(key), "id")
		if uuid := deviceUUIDIn.FindString(id); uuid != "" {
			id = uuid // of a replica or a share
		}
		if slices.Contains(s.pluginNames(d), id) {
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

// endContainers ends what runs in a pod. Until it is deleted its logs stay,
// and a kubelet before 1.34 lists it.
func (s *State) endContainers(p pod, listed bool) error {
	s.endProcesses(p)
	phase := "phase=finished"
	if !listed {
		phase += " listed=no"
	}
	s.Set(p.key, strings.Replace(s.Get(p.key), "phase=running", phase, 1))
	return s.showProcesses()
}
