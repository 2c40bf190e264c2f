package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// spoilDevice has a device plugin call a device unhealthy, or healthy,
// whatever it is.
func spoilDevice(healthy bool) func(*State, input) error {
	return func(s *State, in input) error {
		if err := s.needsKubelet(); err != nil {
			return err
		}
		arg := in["device"]
		if ds, err := s.devices(arg); err == nil {
			for _, d := range ds {
				s.call(s.deviceUUID(d), healthy)
			}
			return nil
		}
		h, err := s.reference(arg)
		if err != nil {
			return err
		}
		s.call(h.id, healthy)
		return nil
	}
}

// call has the device plugin call a device healthy or not.
func (s *State) call(id string, healthy bool) {
	now, before := "unhealthy.", "healthy."
	if healthy {
		now, before = before, now
	}
	s.Set(now+id, "1")
	s.Delete(before + id)
}

// passing are the Xids that NVIDIA's device plugin takes for an application's
// fault (k8s-device-plugin, internal/rm/health.go). After any other it calls
// the device unhealthy until it is started anew.
var passing = []uint64{13, 31, 43, 45, 68, 109}

// pluginSees lets the device plugin hear of a Xid.
func (s *State) pluginSees(d device, code uint64) {
	if s.Has("kubelet") && !slices.Contains(passing, code) && !s.Has("healthy."+s.deviceUUID(d)) {
		s.call(s.deviceUUID(d), false)
	}
}

// stopPlugin ends the device plugin of some resources, or starts it again. The
// kubelet takes what it offered back at once; who holds a device keeps it.
func stopPlugin(s *State, in input) error {
	if err := s.needsKubelet(); err != nil {
		return err
	}
	offered := s.allocatable()
	for resource := range offered {
		if ok, err := path.Match(in["resource"], resource); err == nil && ok {
			s.Set(pluginDown+in["resource"], "1")
			return nil
		}
	}
	return fmt.Errorf("no device plugin offers %q; offered are %s", in["resource"], strings.Join(slices.Sorted(maps.Keys(offered)), ", "))
}

func startPlugin(s *State, in input) error {
	if !s.Has(pluginDown + in["resource"]) {
		return fmt.Errorf("no device plugin of %q is down", in["resource"])
	}
	s.Delete(pluginDown + in["resource"])
	return nil
}

// pluginDown is the beginning of the keys of resources whose plugin is down.
const pluginDown = "plugin_down."

// pluginIsDown reports whether nobody offers a resource.
func (s *State) pluginIsDown(resource string) bool {
	return slices.ContainsFunc(s.keys(pluginDown), func(key string) bool {
		ok, _ := path.Match(strings.TrimPrefix(key, pluginDown), resource)
		return ok
	})
}
