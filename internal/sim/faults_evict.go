package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
				return s.endContainers(q, false)
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

// hasDevice reports whether a device is allocated to a pod, by any id.
func (s *State) hasDevice(p pod, d device) bool {
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

// endContainers ends the containers of a pod. Until it is deleted its logs
// remain, and a kubelet before 1.34 lists it.
func (s *State) endContainers(p pod, listed bool) error {
	s.endProcesses(p)
	phase := "phase=finished"
	if !listed {
		phase += " listed=no"
	}
	s.Set(p.key, strings.Replace(s.Get(p.key), "phase=running", phase, 1))
	return s.showProcesses()
}
